//! stub
use crate::clock::Clock;
use crate::store::*;
use catraca_core::{batch::*, cell::*, digest::Key, run::run, time::Time};
use std::collections::BTreeMap;
use std::sync::Arc;
#[derive(Clone, Debug, Default)]
pub struct MemoryOptions {}
macro_rules! pools { ($($f:ident : $t:ty),*) => {
 #[derive(Default)] pub struct P { $($f: BTreeMap<Key,$t>),* }
 $( impl Pool<$t> for P {
  fn get(&mut self,k:Key,now:Time)->Option<&mut $t>{ self.$f.get_mut(&k).filter(|c| now < c.forgotten_at()) }
  fn edit<R>(&mut self,k:Key,now:Time,f:impl FnOnce(&mut $t)->R)->Option<R>{ Pool::<$t>::get(self,k,now).map(f) }
  fn put(&mut self,k:Key,c:$t,_:Time)->bool{ self.$f.insert(k,c); true }
  fn remove(&mut self,k:Key,_:Time)->bool{ self.$f.remove(&k).is_some() } } )* } }
pools!(a:Bucket,b:Log,c:Fixed,d:Leases,e:Block,f:Watch,g:Mark,h:Reference);
impl Cells for P {
    fn place(&mut self, _: Key, _: u64, _: Time) -> Place {
        Place::Own
    }
}
pub struct Memory {
    p: parking_lot::Mutex<P>,
    c: Arc<dyn Clock>,
}
impl Memory {
    pub fn new(_: MemoryOptions, c: Arc<dyn Clock>) -> Self {
        Self { p: Default::default(), c }
    }
}
impl Store for Memory {
    fn apply(&self, b: &Batch, w: When) -> Result<Reply, StoreError> {
        let mut p = self.p.lock();
        let now = match w {
            When::Store => self.c.now(),
            When::At(t) => t,
        };
        Ok(run(b, &mut *p, now))
    }
}
