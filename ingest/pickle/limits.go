package pickle

// Limits has the largest sizes that one pickle may have or need. A field that is 0 stands for its default.
type Limits struct {
	Depth       int   // containers inside containers; default 64, at most 250
	StringBytes int64 // length of one string, bytes object or text line; default 256 MiB
	Input       int64 // bytes read, after decompression; default 64 GiB
	Elements    int64 // elements of all containers together; default 2^33
	Memory      int64 // bytes held by stack, memo, strings and whatever the builder charges; default 8 GiB
}

// maxIntBytes is the largest length of an integer, in bytes. Turning an integer into text takes more than linear time.
const maxIntBytes = 512

func (l Limits) withDefaults() Limits {
	if l.Depth <= 0 {
		l.Depth = 64
	}
	l.Depth = min(l.Depth, 250)
	if l.StringBytes <= 0 {
		l.StringBytes = 256 << 20
	}
	if l.Input <= 0 {
		l.Input = 64 << 30
	}
	if l.Elements <= 0 {
		l.Elements = 1 << 33
	}
	if l.Memory <= 0 {
		l.Memory = 8 << 30
	}
	return l
}
