package phantom

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A cudaLibrary describes a CUDA library, by the prefix of its functions. NVRTC is not among these libraries, since the
// real one compiles without a device.
type cudaLibrary struct {
	prefix string
	// notSupported is the status with which the library's functions report that they cannot do something.
	notSupported int
}

var cudaLibraries = []cudaLibrary{
	{"__cuda", 801},
	{"cudnn", 3000},
	{"cuda", 801},
	{"cublas", 15},
	{"cusolver", 9},
	{"cusparse", 10},
	{"cufft", 16},
	{"curand", 204},
	{"cupti", 27},
	{"nccl", 5},
}

func libraryOf(symbol string) (cudaLibrary, bool) {
	for _, library := range cudaLibraries {
		if strings.HasPrefix(symbol, library.prefix) {
			return library, true
		}
	}
	return cudaLibrary{}, false
}

// driverSymbol matches the functions of libcuda.so.1, but not those of cuFile, whose library needs no device.
var driverSymbol = regexp.MustCompile(`^cu[A-Z]`)

func isDriverSymbol(symbol string) bool {
	return driverSymbol.MatchString(symbol) && !strings.HasPrefix(symbol, "cuFile")
}

type stubKind int

const (
	// stubIgnored is a stub that does nothing and succeeds: launches, setters, destructors.
	stubIgnored stubKind = iota
	// stubRefused is a stub that fails and names the function. stubRefused is for functions whose answer is not known:
	// a caller that gets "done" would continue with a variable that was never written (torch then requested 130,000 GiB
	// of LSTM workspace).
	stubRefused
	// stubText is a stub that returns a text, since std::string(nullptr) would crash the process.
	stubText
)

var (
	textFunction = regexp.MustCompile(`(GetErrorString|GetErrorName|GetResultName|GetLastError)$`)
	// transferFunction matches functions with Get in their names that move data, which nothing reads.
	transferFunction = regexp.MustCompile(`Get(Matrix|Vector)(Async)?$`)
	queryFunction    = regexp.MustCompile(
		`[Ss]ize|[Ww]ork[Ss]?pace|Estimat|MakePlan|Nnz|Get|Query|cudnnFind|cudaIpc|Window(De)?[Rr]egister|zeroPivot`)
	// setterFunction matches functions with a size in their names that take this size from the caller.
	setterFunction = regexp.MustCompile(`^[a-z]+(Dn|Lt)?Set[A-Z]`)
)

func kindOfStub(symbol string) stubKind {
	switch {
	case textFunction.MatchString(symbol):
		return stubText
	case transferFunction.MatchString(symbol), setterFunction.MatchString(symbol):
		return stubIgnored
	case queryFunction.MatchString(symbol):
		return stubRefused
	}
	return stubIgnored
}

// generateStubs returns C definitions of the undefined symbols that none of this package's objects defines. wanted
// selects the symbols that the library must provide.
func generateStubs(undefined []string, defined map[string]bool, wanted func(string) bool) []byte {
	symbols := slices.Clone(undefined)
	slices.Sort(symbols)
	var b bytes.Buffer
	b.WriteString("/* Generated: what torch's libraries need and the phantom GPU does not model. */\n")
	b.WriteString("extern int phantom_ignore(const char *name, int status) __attribute__((weak));\n")
	b.WriteString("extern int phantom_refuse(const char *name, int status) __attribute__((weak));\n")
	b.WriteString("#define API __attribute__((visibility(\"default\")))\n")
	for _, symbol := range slices.Compact(symbols) {
		if defined[symbol] || !wanted(symbol) {
			continue
		}
		library, _ := libraryOf(symbol)
		switch kindOfStub(symbol) {
		case stubText:
			fmt.Fprintf(&b, "API const char *%s(void) { return \"an error of the phantom GPU\"; }\n", symbol)
		case stubRefused:
			status := library.notSupported
			if status == 0 {
				status = 801 // CUDA_ERROR_NOT_SUPPORTED
			}
			fmt.Fprintf(&b, "API int %s(void) { return phantom_refuse ? phantom_refuse(\"%s\", %d) : %d; }\n", symbol,
				symbol, status, status)
		default:
			fmt.Fprintf(&b, "API int %s(void) { return phantom_ignore ? phantom_ignore(\"%s\", 0) : 0; }\n", symbol,
				symbol)
		}
	}
	return b.Bytes()
}

func isRuntimeSymbol(symbol string) bool {
	_, ok := libraryOf(symbol)
	return ok
}
