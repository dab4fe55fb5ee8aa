//! The names of enums in the API and in messages.

/// Defines `ALL` and `name` of an enum from a table of its variants and their names.
macro_rules! names {
    ($enum:ident: $($variant:ident => $name:literal),+) => {
        impl $enum {
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name in the API or in messages.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

pub(crate) use names;
