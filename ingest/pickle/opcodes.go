package pickle

// The opcodes, in pickletools' names.
const (
	opMark           = '('
	opStop           = '.'
	opPop            = '0'
	opPopMark        = '1'
	opDup            = '2'
	opFloat          = 'F'
	opInt            = 'I'
	opBinInt         = 'J'
	opBinInt1        = 'K'
	opLong           = 'L'
	opBinInt2        = 'M'
	opNone           = 'N'
	opString         = 'S'
	opBinString      = 'T'
	opShortBinString = 'U'
	opUnicode        = 'V'
	opBinUnicode     = 'X'
	opBinBytes       = 'B'
	opShortBinBytes  = 'C'
	opBinFloat       = 'G'
	opAppend         = 'a'
	opDict           = 'd'
	opEmptyDict      = '}'
	opAppends        = 'e'
	opGet            = 'g'
	opBinGet         = 'h'
	opLongBinGet     = 'j'
	opList           = 'l'
	opEmptyList      = ']'
	opPut            = 'p'
	opBinPut         = 'q'
	opLongBinPut     = 'r'
	opSetItem        = 's'
	opTuple          = 't'
	opEmptyTuple     = ')'
	opSetItems       = 'u'

	opProto           = 0x80
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opLong4           = 0x8b
	opShortBinUnicode = 0x8c
	opBinUnicode8     = 0x8d
	opBinBytes8       = 0x8e
	opMemoize         = 0x94
	opFrame           = 0x95
	opByteArray8      = 0x96
)

// A refusal has an opcode's name and the reason why this package does not execute it.
type refusal struct{ name, reason string }

const (
	runsCode   = "would run code"
	needsCode  = "would ask the program for an object"
	notPlain   = "makes a set, which is not read"
	outOfBands = "needs a buffer outside the file"
)

var refused = map[byte]refusal{
	'P':  {"PERSID", needsCode},
	'Q':  {"BINPERSID", needsCode},
	'R':  {"REDUCE", runsCode},
	'b':  {"BUILD", runsCode},
	'c':  {"GLOBAL", runsCode},
	'i':  {"INST", runsCode},
	'o':  {"OBJ", runsCode},
	0x81: {"NEWOBJ", runsCode},
	0x82: {"EXT1", runsCode},
	0x83: {"EXT2", runsCode},
	0x84: {"EXT4", runsCode},
	0x8f: {"EMPTY_SET", notPlain},
	0x90: {"ADDITEMS", notPlain},
	0x91: {"FROZENSET", notPlain},
	0x92: {"NEWOBJ_EX", runsCode},
	0x93: {"STACK_GLOBAL", runsCode},
	0x97: {"NEXT_BUFFER", outOfBands},
	0x98: {"READONLY_BUFFER", outOfBands},
}
