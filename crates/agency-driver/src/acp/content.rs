//! The content blocks of ACP messages, as text.

use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResourceResource};

/// The text of a block, or a name for what is not text.
pub(super) fn block_text(content: &ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(_) => "[an image]".to_owned(),
        ContentBlock::Audio(_) => "[a sound]".to_owned(),
        ContentBlock::ResourceLink(link) => format!("[{} {}]", link.name, link.uri),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => text.text.clone(),
            EmbeddedResourceResource::BlobResourceContents(blob) => format!("[{}]", blob.uri),
            _ => "[something]".to_owned(),
        },
        _ => "[something]".to_owned(),
    }
}
