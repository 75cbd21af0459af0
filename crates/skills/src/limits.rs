//! Every bound of this crate, in one place: what it counts, its default, and why it is there.
//!
//! A bound that is hit is never silent: the scan reports it in [`Registry::bounds_hit`](crate::Registry::bounds_hit),
//! a reader in its reply or its error.

/// The bounds of a scan, of the levels above it and of what a host keeps.
///
/// ```
/// use haversack_skills::Limits;
///
/// let limits = Limits::default().with_folders(10_000).with_entries(100_000);
/// assert_eq!(limits.depth, 6);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Levels below a root in which a skill's folder may lie; 6. `root/a/SKILL.md` is at level 1. Skills in the wild
    /// are grouped one or two levels deep; the rest is somebody's source tree.
    pub depth: usize,
    /// Folders listed in one root; 2,000. A skill's own folder is opened but never listed, so this bounds the folders
    /// that are *not* skills.
    pub folders: usize,
    /// Folder entries looked at in one root; 20,000.
    pub entries: usize,
    /// Bytes of one `SKILL.md`, `package.json` or `.gitignore`; 256 KiB. A larger one is reported, not read.
    pub file_bytes: u64,
    /// Bytes of one bundled file that may be shown as text; 1 MiB. A larger one is refused with its size.
    pub resource_bytes: u64,
    /// Characters of a body in one page; 6,000, about 1,700 tokens.
    pub body_page_chars: usize,
    /// Characters of a bundled file in one page; 12,000.
    pub resource_page_chars: usize,
    /// Files of one skill that a listing shows and a consent covers; 512, the least that the MCP skills extension asks
    /// of a host.
    pub skill_files: usize,
    /// Bytes of all files of one skill that a consent covers; 16 MiB, from the same place.
    pub skill_bytes: u64,
    /// Direct dependencies whose `package.json` is looked at; 2,000.
    pub dependencies: usize,
    /// Skills taken from one package; 10.
    pub package_skills: usize,
    /// Notes kept of things passed over, and entries of one run's record; 4,096. Later ones are counted, not kept.
    pub notes: usize,
    /// Threads that read `SKILL.md` files in a scan; 2. One means that the scan stays on the caller's thread.
    pub threads: usize,
}

/// The default of [`Limits::depth`].
pub const DEPTH: usize = 6;
/// The default of [`Limits::folders`].
pub const FOLDERS: usize = 2_000;
/// The default of [`Limits::entries`].
pub const ENTRIES: usize = 20_000;
/// The default of [`Limits::file_bytes`]: 256 KiB.
pub const FILE_BYTES: u64 = 256 * 1024;
/// The default of [`Limits::resource_bytes`]: 1 MiB.
pub const RESOURCE_BYTES: u64 = 1024 * 1024;
/// The default of [`Limits::body_page_chars`].
pub const BODY_PAGE_CHARS: usize = 6_000;
/// The default of [`Limits::resource_page_chars`].
pub const RESOURCE_PAGE_CHARS: usize = 12_000;
/// The default of [`Limits::skill_files`].
pub const SKILL_FILES: usize = 512;
/// The default of [`Limits::skill_bytes`]: 16 MiB.
pub const SKILL_BYTES: u64 = 16 * 1024 * 1024;
/// The default of [`Limits::dependencies`].
pub const DEPENDENCIES: usize = 2_000;
/// The default of [`Limits::package_skills`].
pub const PACKAGE_SKILLS: usize = 10;
/// The default of [`Limits::notes`].
pub const NOTES: usize = 4_096;
/// The default of [`Limits::threads`].
pub const THREADS: usize = 2;

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: DEPTH,
            folders: FOLDERS,
            entries: ENTRIES,
            file_bytes: FILE_BYTES,
            resource_bytes: RESOURCE_BYTES,
            body_page_chars: BODY_PAGE_CHARS,
            resource_page_chars: RESOURCE_PAGE_CHARS,
            skill_files: SKILL_FILES,
            skill_bytes: SKILL_BYTES,
            dependencies: DEPENDENCIES,
            package_skills: PACKAGE_SKILLS,
            notes: NOTES,
            threads: THREADS,
        }
    }
}

impl Limits {
    /// Sets [`Limits::depth`].
    #[must_use]
    pub fn with_depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Sets [`Limits::folders`].
    #[must_use]
    pub fn with_folders(mut self, folders: usize) -> Self {
        self.folders = folders;
        self
    }

    /// Sets [`Limits::entries`].
    #[must_use]
    pub fn with_entries(mut self, entries: usize) -> Self {
        self.entries = entries;
        self
    }

    /// Sets [`Limits::file_bytes`].
    #[must_use]
    pub fn with_file_bytes(mut self, bytes: u64) -> Self {
        self.file_bytes = bytes;
        self
    }

    /// Sets [`Limits::resource_bytes`].
    #[must_use]
    pub fn with_resource_bytes(mut self, bytes: u64) -> Self {
        self.resource_bytes = bytes;
        self
    }

    /// Sets the characters of a page: of a body, and of a bundled file. Less than 1 counts as 1.
    #[must_use]
    pub fn with_page_chars(mut self, body: usize, resource: usize) -> Self {
        self.body_page_chars = body.max(1);
        self.resource_page_chars = resource.max(1);
        self
    }

    /// Sets what of one skill a consent covers and a listing shows: files, and bytes of all of them.
    #[must_use]
    pub fn with_skill_size(mut self, files: usize, bytes: u64) -> Self {
        self.skill_files = files;
        self.skill_bytes = bytes;
        self
    }

    /// Sets the packages looked at, and the skills taken from each.
    #[must_use]
    pub fn with_packages(mut self, dependencies: usize, skills_each: usize) -> Self {
        self.dependencies = dependencies;
        self.package_skills = skills_each;
        self
    }

    /// Sets [`Limits::notes`].
    #[must_use]
    pub fn with_notes(mut self, notes: usize) -> Self {
        self.notes = notes;
        self
    }

    /// Sets [`Limits::threads`]; 0 counts as 1.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }
}
