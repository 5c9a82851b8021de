//! Enums whose values have names outside of Rust.

/// An enum of the contract, each value with the name that it has on the wire and in metrics.
macro_rules! named {
    ($(#[$of_type:meta])* pub enum $type:ident { $($(#[$of_value:meta])* $value:ident = $name:literal,)+ }) => {
        $(#[$of_type])*
        pub enum $type {
            $($(#[$of_value])* $value,)+
        }

        impl $type {
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.as_str() == name)
            }
        }
    };
}
pub(crate) use named;
