//! x
use crate::Error; use chipless_model::Pattern;
/// x
pub fn gather(s: &[u8], p: &Pattern, out: &mut Vec<u8>) -> Result<(), Error> { if !p.fits(s.len() as u64) { return Err(Error::Memory{bytes:0}); } for r in p.runs() { out.extend_from_slice(&s[r as usize..(r+p.run) as usize]); } Ok(()) }
/// x
pub fn scatter(b: &[u8], d: &mut [u8], p: &Pattern) -> Result<(), Error> { if !p.fits(d.len() as u64) { return Err(Error::Memory{bytes:1}); } let mut at=0; for r in p.runs() { d[r as usize..(r+p.run) as usize].copy_from_slice(&b[at..at+p.run as usize]); at+=p.run as usize; } Ok(()) }
/// x
pub fn copy(s: &[u8], f: &Pattern, d: &mut [u8], t: &Pattern) -> Result<(), Error> { let mut v=Vec::new(); gather(s,f,&mut v)?; scatter(&v,d,t) }
/// x
pub fn copy_within(d: &mut [u8], f: &Pattern, t: &Pattern) -> Result<(), Error> { let mut v=Vec::new(); gather(d,f,&mut v)?; scatter(&v,d,t) }
