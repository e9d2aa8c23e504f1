//! Values of single fields.

use crate::json::{FaultKind, Reader, Result};
use crate::schedule::{Bounds, LayerType, TensorKind};

/// `layer_type` by name.
const LAYER_TYPES: [(&str, LayerType); 8] = [
    ("pe", LayerType::Pe),
    ("vp", LayerType::Vp),
    ("dt", LayerType::Dt),
    ("conv2d", LayerType::Conv2d),
    ("fc", LayerType::Fc),
    ("pool", LayerType::Pool),
    ("element_wise", LayerType::ElementWise),
    ("point_to_point", LayerType::PointToPoint),
];

/// A layer's type; the spec has others than its ancestors.
pub(super) fn layer_type_of(reader: &mut Reader<'_>, spec: bool) -> Result<LayerType> {
    let known = reader
        .clone()
        .string()
        .ok()
        .and_then(|text| LAYER_TYPES.iter().find(|(name, _)| *name == text));
    match known {
        Some((_, kind)) if spec == (kind.unit() == *kind) => reader.string().map(|_| *kind),
        _ if spec => reader.expected("the layer type pe, vp or dt"),
        _ => reader.expected("the layer type conv2d, fc, pool, element_wise or point_to_point"),
    }
}

/// The lower and the upper corner of a box.
pub(super) fn corners(reader: &mut Reader<'_>) -> Result<Bounds> {
    let mut corners = [[0; 4]; 2];
    let mut list = reader.list()?;
    let mut count = 0;
    while reader.item(&mut list)? {
        let corner = reader.array(Reader::u32)?;
        if let Some(slot) = corners.get_mut(count) {
            *slot = corner;
        }
        count += 1;
    }
    if count != 2 {
        return reader.fault_at(
            list.at,
            FaultKind::Value,
            format!("expected the lower and the upper corner, found {count} lists"),
        );
    }
    Ok(Bounds {
        lower: corners[0],
        upper: corners[1],
    })
}

/// Ranges of addresses.
pub(super) fn regions(reader: &mut Reader<'_>) -> Result<Box<[[u64; 2]]>> {
    let mut regions = Vec::new();
    reader.each(|reader| {
        regions.push(reader.array(Reader::size)?);
        Ok(())
    })?;
    Ok(regions.into_boxed_slice())
}

/// What a tensor of a snapshot is.
pub(super) fn tensor_kind(reader: &mut Reader<'_>) -> Result<TensorKind> {
    let kinds = [TensorKind::Ifmap, TensorKind::Ofmap, TensorKind::Weight];
    match reader
        .clone()
        .string()
        .ok()
        .and_then(|text| kinds.into_iter().find(|kind| kind.name() == text))
    {
        Some(kind) => reader.string().map(|_| kind),
        None => reader.expected("the type ifmap, ofmap or weight"),
    }
}

/// A number of 16 bits.
pub(super) fn short(reader: &mut Reader<'_>) -> Result<u16> {
    Ok(reader.integer(u64::from(u16::MAX))? as u16)
}

/// A number of 8 bits.
pub(super) fn byte(reader: &mut Reader<'_>) -> Result<u8> {
    Ok(reader.integer(u64::from(u8::MAX))? as u8)
}

/// A number or null.
pub(super) fn nullable(reader: &mut Reader<'_>) -> Result<Option<u32>> {
    if reader.null()? {
        Ok(None)
    } else {
        reader.u32().map(Some)
    }
}
