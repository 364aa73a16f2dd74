//! Replaces the C++ library simdutf, as far as rio-vt uses it.
//!
//! The screen gives rio-vt characters, not bytes, so our code never calls anything here. With this replacement
//! (see `[patch.crates-io]`) no C++ compiler is needed, nothing links libstdc++, and other targets can be checked
//! from Linux. Not a general library: it lacks everything that rio-vt does not call.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    Success,
    Other,
}

#[derive(Clone, Copy, Debug)]
pub struct Result {
    pub error: ErrorCode,
    /// Units written, or the position of the error.
    pub count: usize,
}

#[derive(Clone, Copy, Debug)]
pub enum Base64Options {
    Default,
    DefaultNoPadding,
}

#[derive(Clone, Copy, Debug)]
pub enum LastChunkHandlingOptions {
    Loose,
}

/// The position of the first invalid sequence, if there is one.
pub fn validate_utf8_with_errors(src: &[u8]) -> Result {
    match std::str::from_utf8(src) {
        Ok(_) => Result { error: ErrorCode::Success, count: src.len() },
        Err(error) => Result { error: ErrorCode::Other, count: error.valid_up_to() },
    }
}

/// The number of characters.
pub fn count_utf8(src: &[u8]) -> usize {
    src.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

/// Writes the characters up to the first invalid sequence.
///
/// # Safety
/// `src` must be valid for `len` bytes, and `dst` for as many characters as they hold.
pub unsafe fn convert_utf8_to_utf32_with_errors(src: *const u8, len: usize, dst: *mut u32) -> Result {
    // SAFETY: the caller guarantees that `src` is valid for `len` bytes.
    let bytes = unsafe { std::slice::from_raw_parts(src, len) };
    let valid = validate_utf8_with_errors(bytes);
    let text = std::str::from_utf8(&bytes[..valid.count]).unwrap_or_default();
    for (at, c) in text.chars().enumerate() {
        // SAFETY: the caller guarantees space for every character.
        unsafe { dst.add(at).write(c.into()) };
    }
    match valid.error {
        ErrorCode::Success => Result { error: ErrorCode::Success, count: text.chars().count() },
        ErrorCode::Other => valid,
    }
}

/// # Safety
/// Always safe: it reads nothing.
pub unsafe fn maximal_binary_length_from_base64(_input: *const u8, len: usize) -> usize {
    len
}

/// Always an error: images and clipboards are not decoded here.
///
/// # Safety
/// Always safe: it reads and writes nothing.
pub unsafe fn base64_to_binary(
    _input: *const u8,
    _len: usize,
    _output: *mut u8,
    _options: Base64Options,
    _last_chunk: LastChunkHandlingOptions,
) -> Result {
    Result { error: ErrorCode::Other, count: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_written_up_to_the_first_invalid_one() {
        let mut places = [0u32; 4];
        let text = "aé漢".as_bytes();
        // SAFETY: there is space for four characters, and the text has three.
        let result = unsafe { convert_utf8_to_utf32_with_errors(text.as_ptr(), text.len(), places.as_mut_ptr()) };
        assert_eq!((result.error, result.count), (ErrorCode::Success, 3));
        assert_eq!(places, ['a' as u32, 'é' as u32, '漢' as u32, 0]);
        assert_eq!(validate_utf8_with_errors(b"ab\xff").count, 2);
        assert_eq!(count_utf8(text), 3);
    }
}
