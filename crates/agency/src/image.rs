//! Images in messages: read from files, checked, and written in Base64.

use std::io::Read;
use std::path::Path;

use agency_api::chat::Image;
use agency_api::{Failure, FailureCode};
use data_encoding::BASE64;

/// Agents refuse larger images, or make them smaller.
const LARGEST: u64 = 10 << 20;

/// The first bytes of each kind of image that agents take, and its media type.
const KINDS: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
];

pub(crate) fn read(path: &Path) -> Result<Image, Failure> {
    let shown = path.display();
    let unreadable = |err: &std::io::Error| {
        Failure::new(format!("cannot read the image {shown}")).code(FailureCode::IoError).caused_by(err)
    };
    let file = std::fs::File::open(path).map_err(|err| unreadable(&err))?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|err| unreadable(&err))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Failure::new(format!("the image {shown} is too large"))
            .code(FailureCode::InvalidArgument)
            .because("an image in a message may have 10 MB"));
    }
    let media_type = media_type(&bytes).ok_or_else(|| {
        Failure::new(format!("{shown} is not an image that agents take"))
            .code(FailureCode::InvalidArgument)
            .because("it is neither PNG nor JPEG, GIF or WebP")
    })?;
    Ok(Image { media_type: media_type.to_owned(), data: BASE64.encode(&bytes) })
}

/// Whether the name of a file says that it is an image.
pub(crate) fn is_image_name(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    matches!(extension.as_deref(), Some("png" | "jpg" | "jpeg" | "gif" | "webp"))
}

fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let (_, kind) = KINDS.iter().find(|(first, _)| bytes.starts_with(first))?;
    let is_other_riff = *kind == "image/webp" && bytes.get(8..12) != Some(b"WEBP");
    Some(*kind).filter(|_| !is_other_riff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_recognized_by_its_content() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("shot.png");
        std::fs::write(&path, b"\x89PNG\r\n\x1a\n...").unwrap();
        let image = read(&path).unwrap();
        assert_eq!((image.media_type.as_str(), image.data.as_str()), ("image/png", "iVBORw0KGgouLi4="));
        std::fs::write(&path, "only text").unwrap();
        assert!(read(&path).unwrap_err().message.contains("is not an image that agents take"));
        assert!(read(&home.path().join("none.png")).unwrap_err().message.contains("cannot read the image"));
        assert_eq!(media_type(b"RIFF1234WEBPVP8 "), Some("image/webp"));
        assert_eq!(media_type(b"RIFF1234WAVEfmt "), None);
        assert!(is_image_name(Path::new("a/B.PNG")) && !is_image_name(Path::new("a/b.rs")));
    }
}
