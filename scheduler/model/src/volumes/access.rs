//! How a volume may be mounted, and as what.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AccessMode {
    ReadWriteOnce,
    ReadOnlyMany,
    ReadWriteMany,
    ReadWriteOncePod,
}

impl AccessMode {
    pub const ALL: [Self; 4] =
        [Self::ReadWriteOnce, Self::ReadOnlyMany, Self::ReadWriteMany, Self::ReadWriteOncePod];

    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadWriteOnce => "ReadWriteOnce",
            Self::ReadOnlyMany => "ReadOnlyMany",
            Self::ReadWriteMany => "ReadWriteMany",
            Self::ReadWriteOncePod => "ReadWriteOncePod",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// `spec.accessModes` of a claim or a PersistentVolume.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct AccessModes(u8);

impl AccessModes {
    /// By their names. The API server accepts no others.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let known = |name: &str| AccessMode::ALL.into_iter().find(|mode| mode.name() == name);
        names.into_iter().filter_map(known).collect()
    }

    pub const fn contains(self, mode: AccessMode) -> bool {
        self.0 & mode.bit() != 0
    }

    /// Whether every mode of `wanted` is among these.
    pub const fn include(self, wanted: Self) -> bool {
        wanted.0 & !self.0 == 0
    }
}

impl FromIterator<AccessMode> for AccessModes {
    fn from_iter<I: IntoIterator<Item = AccessMode>>(modes: I) -> Self {
        Self(modes.into_iter().fold(0, |bits, mode| bits | mode.bit()))
    }
}

/// `spec.volumeMode`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum VolumeMode {
    /// Also where none is named.
    #[default]
    Filesystem,
    Block,
}

impl VolumeMode {
    pub fn parse(name: Option<&str>) -> Self {
        if name == Some("Block") { Self::Block } else { Self::Filesystem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_include_what_is_among_them_and_no_more() {
        let both = AccessModes::parse(["ReadWriteOnce", "ReadOnlyMany"]);
        let once = AccessModes::parse(["ReadWriteOnce"]);
        assert!(both.include(once) && both.include(both) && both.include(AccessModes::default()));
        assert!(!once.include(both));
        assert!(both.contains(AccessMode::ReadOnlyMany));
        assert!(!both.contains(AccessMode::ReadWriteOncePod));
    }

    #[test]
    fn a_volume_is_a_filesystem_unless_it_says_block() {
        assert_eq!(VolumeMode::parse(None), VolumeMode::Filesystem);
        assert_eq!(VolumeMode::parse(Some("Block")), VolumeMode::Block);
    }
}
