package phantom

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ProfileSchema is the schema of a profile file.
const ProfileSchema = "dpsight.phantom.profile/1"

// DefaultProfile is the profile that is used if none is named.
const DefaultProfile = "h200"

// Profile describes the device that the phantom GPU presents. A profile is a JSON file of this form in the folder
// profiles.
type Profile struct {
	Schema string `json:"schema"`
	// ID is the profile's name on the command line, as in --device phantom:h200.
	ID string `json:"id"`
	// Name is the device's name as CUDA and NVML report it.
	Name string `json:"name"`
	// Checked says whether predictions for the profile were compared with recordings from such a device.
	Checked bool `json:"checked"`
	// CheckedTorch is the version of torch in the recordings that predictions were compared with, since other versions
	// allocate differently.
	CheckedTorch string `json:"checked_torch,omitempty"`
	// Addresses is the address policy if Library.AddressPolicy names none: "h200" if the device's driver was seen to
	// place segments like that, else "blocks".
	Addresses string `json:"addresses"`
	// Source says where the properties come from that neither Sources nor Assumed names: they were read from a device,
	// or published.
	Source string `json:"source"`
	// Sources has, by property, a source that differs from Source.
	Sources map[string]string `json:"sources,omitempty"`
	// Assumed has, by property, the reason for its value if no source states it. A checked profile has no assumed
	// properties.
	Assumed map[string]string `json:"assumed,omitempty"`
	// Properties are CUDA's device properties by snake-case name, with the unit as a suffix (bytes, khz, bits). Counts
	// have no suffix, and yes and no are 1 and 0. total_memory_bytes is cudaDeviceProp.totalGlobalMem. context_bytes is
	// the part of total_memory_bytes that a process's context takes before the first allocation.
	Properties map[string]int64 `json:"properties"`
	// Clusters has, by the number of multiprocessors in a cluster, how many such clusters the device can hold at once.
	// If it is missing, cuDNN's workspaces for cluster kernels stay as cuDNN reports them without a device. Cluster
	// sizes that are missing are unknown.
	Clusters map[int]int64 `json:"clusters,omitempty"`
	// ClustersSource says where the numbers in Clusters come from.
	ClustersSource string `json:"clusters_source,omitempty"`
	// Withheld is true if the engines that cuDNN withholds without a device were seen to run on this device, with the
	// workspaces in csrc/corrections. If it is false, the phantom GPU assumes that the first engine that cuDNN offers
	// without a device is used.
	Withheld bool `json:"withheld,omitempty"`
	// WithheldSource says where these engines were seen to run.
	WithheldSource string `json:"withheld_source,omitempty"`
}

//go:embed profiles/*.json
var profileFiles embed.FS

// Profiles lists the names of the built-in profiles, sorted.
func Profiles() []string {
	files, err := fs.Glob(profileFiles, "profiles/*.json")
	if err != nil {
		panic(err) // the pattern is a valid constant
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(file, "profiles/"), ".json"))
	}
	slices.Sort(names)
	return names
}

// LoadProfile returns a built-in profile by name. For an unknown name, the error lists the known names.
func LoadProfile(name string) (Profile, error) {
	if !slices.Contains(Profiles(), name) {
		return Profile{}, fmt.Errorf("unknown device profile %q: known are %s", name, strings.Join(Profiles(), ", "))
	}
	data, err := profileFiles.ReadFile("profiles/" + name + ".json")
	if err != nil {
		return Profile{}, fmt.Errorf("device profile %q: %w", name, err)
	}
	profile, err := ParseProfile(data)
	if err != nil {
		return Profile{}, fmt.Errorf("device profile %q: %w", name, err)
	}
	return profile, nil
}

// ParseProfile parses a profile file and checks it: the right schema, no unknown field, and each property exactly once.
func ParseProfile(data []byte) (Profile, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var profile Profile
	if err := decoder.Decode(&profile); err != nil {
		return Profile{}, err
	}
	return profile, profile.check()
}

func (p Profile) check() error {
	if p.Schema != ProfileSchema {
		return fmt.Errorf("schema %q is not %q", p.Schema, ProfileSchema)
	}
	for field, text := range map[string]string{"id": p.ID, "name": p.Name, "source": p.Source} {
		if err := checkText(text); err != nil {
			return fmt.Errorf("field %q %w", field, err)
		}
	}
	if p.Checked != (p.CheckedTorch != "") {
		return errors.New("field \"checked_torch\" belongs to a checked profile, and to no other")
	}
	if p.Addresses != "h200" && p.Addresses != "blocks" {
		return fmt.Errorf("field %q is %q: h200 or blocks", "addresses", p.Addresses)
	}
	if err := p.checkClusters(); err != nil {
		return err
	}
	if p.Withheld || p.WithheldSource != "" {
		if err := checkText(p.WithheldSource); err != nil {
			return fmt.Errorf("field %q %w", "withheld_source", err)
		}
	}
	names := PropertyNames()
	if err := p.checkOrigins(names); err != nil {
		return err
	}
	for _, name := range names {
		value, ok := p.Properties[name]
		if !ok {
			return fmt.Errorf("property %q is missing", name)
		}
		if value < 0 {
			return fmt.Errorf("property %q is negative", name)
		}
	}
	for name := range p.Properties {
		if !slices.Contains(names, name) {
			return fmt.Errorf("property %q is unknown", name)
		}
	}
	for _, name := range []string{"multiprocessors", "warp_size", "max_threads_per_block", "total_memory_bytes"} {
		if p.Properties[name] == 0 {
			return fmt.Errorf("property %q is zero", name)
		}
	}
	if p.Properties["context_bytes"] >= p.Properties["total_memory_bytes"] {
		return fmt.Errorf("property %q is not below %q", "context_bytes", "total_memory_bytes")
	}
	return nil
}

// maxCluster is the size of the largest cluster in CUDA. phantom.h has an entry for each size.
const maxCluster = 16

func (p Profile) checkClusters() error {
	if len(p.Clusters) == 0 && p.ClustersSource == "" {
		return nil
	}
	if err := checkText(p.ClustersSource); err != nil {
		return fmt.Errorf("field %q %w", "clusters_source", err)
	}
	if p.Clusters[1] != p.Properties["multiprocessors"] {
		return errors.New("field \"clusters\" has not as many clusters of one as there are multiprocessors")
	}
	var smaller int64
	for _, size := range slices.Sorted(maps.Keys(p.Clusters)) {
		count := p.Clusters[size]
		if size < 1 || size > maxCluster || count < 1 || count > p.Properties["multiprocessors"]/int64(size) {
			return fmt.Errorf("field %q: %d clusters of %d cannot be", "clusters", count, size)
		}
		// Where a larger cluster fits, a smaller one does too.
		if smaller != 0 && count > smaller {
			return fmt.Errorf("field %q has more clusters of %d than of fewer", "clusters", size)
		}
		smaller = count
	}
	return nil
}

// checkOrigins checks that stated origins belong to existing properties, and that each property has only one.
func (p Profile) checkOrigins(names []string) error {
	for field, origins := range map[string]map[string]string{"sources": p.Sources, "assumed": p.Assumed} {
		for name, text := range origins {
			if !slices.Contains(names, name) {
				return fmt.Errorf("property %q in field %q is unknown", name, field)
			}
			if err := checkText(text); err != nil {
				return fmt.Errorf("property %q in field %q %w", name, field, err)
			}
		}
	}
	for name := range p.Assumed {
		if _, sourced := p.Sources[name]; sourced {
			return fmt.Errorf("property %q has a source and is assumed", name)
		}
		if p.Checked {
			return fmt.Errorf("property %q of a checked profile is assumed", name)
		}
	}
	return nil
}

// checkText refuses text that would break the lines that the C library reads, or cuDNN's JSON that the library writes.
func checkText(text string) error {
	if text == "" || strings.ContainsAny(text, "\n\"\\") {
		return errors.New("is empty or has a character that it may not have")
	}
	return nil
}

// PropertyNames returns the properties of a profile, in the order of the C library's table, which declares them.
func PropertyNames() []string {
	header, err := sources.ReadFile("csrc/phantom.h")
	if err != nil {
		panic(err) // the file is embedded
	}
	var names []string
	for _, line := range strings.Split(string(header), "\n") {
		name, found := strings.CutPrefix(strings.TrimSpace(line), "P(")
		if name, _, closed := strings.Cut(name, ")"); found && closed {
			names = append(names, name)
		}
	}
	return names
}

// encode returns the profile in the form that the C library reads: key=value lines, with the version of the kernels
// that the device runs.
func (p Profile) encode(kernels kernelVersion) []byte {
	var b bytes.Buffer
	b.WriteString("name=" + p.Name + "\naddresses=" + p.Addresses + "\n")
	fmt.Fprintf(&b, "kernel_ptx_version=%d\nkernel_binary_version=%d\n", kernels.ptx, kernels.binary)
	if len(p.Clusters) > 0 {
		var clusters []string
		for _, size := range slices.Sorted(maps.Keys(p.Clusters)) {
			clusters = append(clusters, fmt.Sprintf("%d:%d", size, p.Clusters[size]))
		}
		b.WriteString("clusters=" + strings.Join(clusters, ",") + "\n")
	}
	if p.Withheld {
		b.WriteString("withheld=1\n")
	}
	for _, name := range PropertyNames() {
		b.WriteString(name + "=" + strconv.FormatInt(p.Properties[name], 10) + "\n")
	}
	return b.Bytes()
}
