//! The file that the stand-in runtime writes.

/// Everything that one run recorded.
pub struct Recording {
    pub modules: Vec<Module>,
    pub threads: Vec<Thread>,
    /// The hashes of all gates.
    pub sites: Vec<u64>,
    /// How often an open gate was passed by each of the two ways.
    pub passed: [u64; 2],
}

/// A module as it registered.
pub struct Module {
    pub version: u32,
    pub hash: [u64; 2],
    pub base: u32,
    pub functions: Vec<u64>,
    pub globals: Vec<u64>,
    pub bitcode: Vec<u8>,
}

/// A thread's streams, and the numbers that the thread passed to `mark`.
pub struct Thread {
    pub path: Vec<u8>,
    pub values: Vec<u8>,
    pub marks: Vec<i64>,
}

impl Recording {
    pub fn read(bytes: &[u8]) -> Self {
        let mut reader = Reader(bytes);
        let modules = (0..reader.word()).map(|_| reader.module()).collect();
        let threads = (0..reader.word()).map(|_| reader.thread()).collect();
        let count = reader.word();
        let sites = reader.words(count);
        let passed = [reader.word(), reader.word()];
        assert!(reader.0.is_empty());
        Self { modules, threads, sites, passed }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, length: u64) -> &'a [u8] {
        let (head, tail) = self.0.split_at(length as usize);
        self.0 = tail;
        head
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes(8).try_into().expect("eight bytes"))
    }

    fn words(&mut self, count: u64) -> Vec<u64> {
        (0..count).map(|_| self.word()).collect()
    }

    fn module(&mut self) -> Module {
        let version = self.word() as u32;
        let hash = [self.word(), self.word()];
        let base = self.word() as u32;
        let count = self.word();
        let functions = self.words(count);
        let count = self.word();
        let globals = self.words(count);
        let length = self.word();
        let bitcode = self.bytes(length).to_vec();
        Module { version, hash, base, functions, globals, bitcode }
    }

    fn thread(&mut self) -> Thread {
        let length = self.word();
        let path = self.bytes(length).to_vec();
        let length = self.word();
        let values = self.bytes(length).to_vec();
        let count = self.word();
        let marks = self.words(count).into_iter().map(|word| word as i64).collect();
        Thread { path, values, marks }
    }
}
