//! Container images, on Nodes and in Pods.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// An image on a Node, with all of its names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeImage {
    pub names: Vec<Arc<str>>,
    pub size_bytes: i64,
}

/// The name under which a Node lists an image: `:latest` is added where no tag or digest stands,
/// and nothing else is completed.
pub fn listed_image_name(name: &str) -> Arc<str> {
    let has_tag = name.rfind(':') > name.rfind('/');
    if has_tag { name.into() } else { format!("{name}:latest").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_tag_is_added() {
        let cases = [
            ("nginx", "nginx:latest"),
            ("nginx:1", "nginx:1"),
            ("host:5000/nginx", "host:5000/nginx:latest"),
            ("host:5000/nginx:1", "host:5000/nginx:1"),
            ("nginx@sha256:0", "nginx@sha256:0"),
            ("", ":latest"),
        ];
        for (name, listed) in cases {
            assert_eq!(listed_image_name(name).as_ref(), listed);
        }
    }
}
