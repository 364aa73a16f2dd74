//! The argument of a handler, made from the parameters of its method.

use agency_api::Failure;

/// The argument of a handler, made from the parameters `P` in two steps: finding what a call is about may take long, and
/// the loop never waits. `W` is everything that the loop owns.
pub trait Argument<W, P>: Sized {
    /// The outcome of the first step, which goes to the loop.
    type Prepared: Send + 'static;

    /// Runs on the task of the caller's request, and may take long.
    fn prepare(params: P) -> impl Future<Output = Result<Self::Prepared, Failure>> + Send;

    /// Runs in the loop, just before the handler.
    fn resolve(world: &mut W, prepared: Self::Prepared) -> Result<Self, Failure>;
}

/// The parameters themselves.
impl<W, P: Send + 'static> Argument<W, P> for P {
    type Prepared = P;

    async fn prepare(params: P) -> Result<P, Failure> {
        Ok(params)
    }

    fn resolve(_world: &mut W, params: P) -> Result<P, Failure> {
        Ok(params)
    }
}
