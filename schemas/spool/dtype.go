package spool

// A DType is the number of a tagged tensor's torch dtype. 0 means that the dtype was not recorded, as in older
// journals, or that the agent has no number for it.
type DType uint8

var dtypeNames = [...]string{"",
	"float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64",
	"complex128",
	"complex32", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
	"float8_e8m0fnu", "float4_e2m1fn_x2"}

// String returns torch's name of the dtype, without "torch."; it is empty if the dtype is unknown.
func (d DType) String() string {
	if int(d) < len(dtypeNames) {
		return dtypeNames[d]
	}
	return ""
}
