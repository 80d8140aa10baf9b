package phantom

import (
	"strings"
	"testing"
)

func TestKindOfStub(t *testing.T) {
	for symbol, want := range map[string]stubKind{
		"cusolverDnXpotrf_bufferSize":                   stubRefused,
		"cusparseSpMM_bufferSize":                       stubRefused,
		"cusparseSpGEMM_workEstimation":                 stubRefused,
		"cusparseXcsrgeam2Nnz":                          stubRefused,
		"cufftXtMakePlanMany":                           stubRefused,
		"cudnnGetRNNTempSpaceSizes":                     stubRefused,
		"cudnnGetConvolutionForwardAlgorithm_v7":        stubRefused,
		"cudnnFindConvolutionForwardAlgorithmEx":        stubRefused,
		"cudaMemPoolGetAttribute":                       stubRefused,
		"cudaIpcOpenMemHandle":                          stubRefused,
		"cublasSgemm_v2":                                stubIgnored,
		"cublasSetWorkspace_v2":                         stubIgnored,
		"cublasSetSmCountTarget":                        stubIgnored,
		"cublasLtMatmulDescSetAttribute":                stubIgnored,
		"cublasGetMatrixAsync":                          stubIgnored,
		"cufftSetWorkArea":                              stubIgnored,
		"cudnnSetTensorNdDescriptor":                    stubIgnored,
		"cusolverDnXgesvdjSetTolerance":                 stubIgnored,
		"cudaGraphLaunch":                               stubIgnored,
		"ncclGroupStart":                                stubIgnored,
		"cusparseGetErrorString":                        stubText,
		"cudnnGetErrorString":                           stubText,
		"ncclGetLastError":                              stubText,
		"cusparseLtMatmulAlgSetAttribute":               stubIgnored,
		"cublasLtMatmulAlgoConfigGetAttribute":          stubRefused,
		"cudnnSpatialTfGridGeneratorForward":            stubIgnored,
		"cusolverDnCgesvdaStridedBatched_bufferSize":    stubRefused,
		"cuptiActivityEnable":                           stubIgnored,
		"cudnnGetCTCLossWorkspaceSize_v8":               stubRefused,
		"cusparseLtSpMMACompressedSize2":                stubRefused,
		"cusparseDestroySpMat":                          stubIgnored,
		"nvshmemSomething":                              stubIgnored,
		"cusolverDnCreate":                              stubIgnored,
		"cusparseCreateIdentityPermutation":             stubIgnored,
		"cudaLibraryGetKernelCount":                     stubRefused,
		"cusparseXbsrsm2_zeroPivot":                     stubRefused,
		"cudaDeviceGetGraphMemAttribute":                stubRefused,
		"cudnnGetFilterNdDescriptor":                    stubRefused,
		"ncclGetPeerDevicePointer":                      stubRefused,
		"cuptiActivityGetNumDroppedRecords":             stubRefused,
		"cublasDgetrsBatched":                           stubIgnored,
		"cudaGraphNodeGetDependencies":                  stubRefused,
		"cudaUserObjectCreate":                          stubIgnored,
		"cufftGetSize":                                  stubRefused,
		"cudnnSetDropoutDescriptor":                     stubIgnored,
		"cudaMemPoolSetAccess":                          stubIgnored,
		"cudnnBatchNormalizationForwardTrainingEx":      stubIgnored,
		"cudnnGetBatchNormalizationBackwardExWorkspace": stubRefused,
	} {
		if got := kindOfStub(symbol); got != want {
			t.Errorf("%s: got kind %d, want %d", symbol, got, want)
		}
	}
}

func TestGenerateStubs(t *testing.T) {
	undefined := []string{"cusparseCreate", "cudaMalloc", "cusolverDnXpotrf_bufferSize", "cusparseCreate",
		"cuLaunchKernel", "nvrtcCompileProgram", "memcpy", "cuFileRead"}
	got := string(generateStubs(undefined, map[string]bool{"cudaMalloc": true}, isRuntimeSymbol))
	if n := strings.Count(got, "int cusparseCreate(void)"); n != 1 {
		t.Errorf("cusparseCreate is defined %d times", n)
	}
	if !strings.Contains(got, `phantom_refuse("cusolverDnXpotrf_bufferSize", 9)`) {
		t.Errorf("the buffer size is not refused with cuSOLVER's status:\n%s", got)
	}
	for _, symbol := range []string{"cudaMalloc(", "cuLaunchKernel", "nvrtcCompileProgram", "memcpy", "cuFileRead"} {
		if strings.Contains(got, symbol) {
			t.Errorf("%s is not for this library, or is ours", symbol)
		}
	}
	driver := string(generateStubs(undefined, nil, isDriverSymbol))
	if !strings.Contains(driver, "int cuLaunchKernel(void)") || strings.Contains(driver, "cuFileRead") ||
		strings.Contains(driver, "cusparse") {
		t.Errorf("the driver's stubs are wrong:\n%s", driver)
	}
}

func TestLibraryOfTellsDriverFromRuntime(t *testing.T) {
	for symbol, status := range map[string]int{"cudnnCreate": 3000, "cudaMalloc": 801, "cublasLtCreate": 15,
		"cufftCreate": 16, "__cudaGetKernel": 801} {
		library, ok := libraryOf(symbol)
		if !ok || library.notSupported != status {
			t.Errorf("%s: got %+v", symbol, library)
		}
	}
	if _, ok := libraryOf("cuMemMap"); ok {
		t.Error("cuMemMap is the driver's")
	}
}
