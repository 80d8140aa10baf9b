package spool

// A DType is what a tagged tensor is made of: torch's dtype by number. 0 is one that was not recorded, or that the
// agent does not know. Journals of agents that recorded none read as 0.
type DType uint8

var dtypeNames = [...]string{"",
	"float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64",
	"complex128",
	"complex32", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
	"float8_e8m0fnu", "float4_e2m1fn_x2"}

// String is the name that torch gives the dtype, without "torch."; empty if it is not known.
func (d DType) String() string {
	if int(d) < len(dtypeNames) {
		return dtypeNames[d]
	}
	return ""
}
