//! Turns what was asked for into sizes that the device has: whole granules, and no more than is free.

const MIB: u64 = 1 << 20;

/// How far things go, as asked for: in MiB.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Asked {
    /// How far the long growth goes, in MiB, at most what is free
    #[arg(long, default_value_t = 32 << 10)]
    pub(crate) growth: u64,
    /// The size of the prefix and of the pool's growth, and the most that other rows take, in MiB, at most a quarter of
    /// what is free
    #[arg(long, default_value_t = 256)]
    pub(crate) size: u64,
}

/// How far things go, in bytes: each at least one granule, and whole ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) granule: u64,
    /// Of the long growth.
    pub(crate) growth: u64,
    /// Of everything else.
    pub(crate) size: u64,
}

impl Asked {
    /// What of it there is on a device with that much free. Rounded down.
    ///
    /// # Errors
    ///
    /// Words for what is too little for a single granule.
    pub(crate) fn resolve(self, granule: u64, free: u64) -> Result<Sizes, String> {
        // A margin for contexts and whoever else is there.
        let most = free.saturating_sub(free / 16);
        let least = 4 * granule;
        if most < least {
            return Err(format!(
                "too little memory: {} KiB of the device are free, and four granules of {} KiB with a margin are needed; free some",
                free >> 10,
                granule >> 10
            ));
        }
        let fit = |name: &str, asked: u64, most: u64| {
            let bytes = asked.saturating_mul(MIB).min(most) / granule * granule;
            let least = granule.div_ceil(MIB);
            let why =
                || format!("--{name} {asked} is less than a granule of {} KiB; ask for {least} or more", granule >> 10);
            Some(bytes).filter(|bytes| *bytes > 0).ok_or_else(why)
        };
        Ok(Sizes { granule, growth: fit("growth", self.growth, most)?, size: fit("size", self.size, most / 4)? })
    }
}

impl Sizes {
    /// As many granules as `most`, or as the size has where that is fewer.
    pub(crate) fn granules(&self, most: u64) -> u64 {
        most.min(self.size / self.granule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANULE: u64 = 2 * MIB;

    fn resolve(growth: u64, size: u64, free: u64) -> Result<(u64, u64), String> {
        let sizes = Asked { growth, size }.resolve(GRANULE, free)?;
        Ok((sizes.growth / MIB, sizes.size / MIB))
    }

    #[test]
    fn what_there_is_room_for_is_as_asked() {
        assert_eq!(resolve(32 << 10, 256, 139 << 30), Ok((32 << 10, 256)));
    }

    #[test]
    fn what_is_no_whole_granules_is_rounded_down() {
        assert_eq!(resolve(65, 63, 139 << 30), Ok((64, 62)));
        // A quarter of 283.125 MiB would be 70.78.
        assert_eq!(resolve(32 << 10, 256, 302 * MIB), Ok((282, 70)));
    }

    #[test]
    fn what_is_no_granule_is_refused() {
        let refused = |growth, size, free| resolve(growth, size, free).unwrap_err();
        assert_eq!(refused(64, 1, 1 << 30), "--size 1 is less than a granule of 2048 KiB; ask for 2 or more");
        assert_eq!(refused(0, 64, 1 << 30), "--growth 0 is less than a granule of 2048 KiB; ask for 2 or more");
        assert!(refused(64, 64, 8 * MIB).starts_with("too little memory: 8192 KiB of the device are free"));
        assert_eq!(resolve(64, 64, 9 * MIB), Ok((8, 2)));
    }

    #[test]
    fn what_no_number_has_room_for_is_what_there_is() {
        assert_eq!(resolve(u64::MAX, u64::MAX, 16 << 30), Ok((15 << 10, 3840)));
    }

    #[test]
    fn fewer_granules_where_the_size_has_fewer() {
        let sizes = Sizes { granule: GRANULE, growth: GRANULE, size: 3 * GRANULE };
        assert_eq!((sizes.granules(2), sizes.granules(256)), (2, 3));
    }
}
