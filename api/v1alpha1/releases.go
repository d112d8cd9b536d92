package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/versions"
)

// ReleasesKind is the kind of a release index.
const ReleasesKind = "SchedulerReleases"

// maxReleases is the number of releases in the longest index. Kubernetes supports three minors at a
// time.
const maxReleases = 200

// SchedulerReleases is a release index: one scheduler's images for several Kubernetes releases and
// their configurations.
type SchedulerReleases struct {
	metav1.TypeMeta `json:",inline"`
	// Releases are in any order. One minor may have several patches.
	Releases []SchedulerRelease `json:"releases"`
}

// SchedulerRelease is the scheduler for one Kubernetes release.
type SchedulerRelease struct {
	// Minor is Release's minor, such as 1.34.
	Minor string `json:"minor" yaml:"minor"`
	// Release is the scheduler's Kubernetes release, such as v1.34.2.
	Release string `json:"release" yaml:"release"`
	// Image is NAME@sha256:DIGEST, or NAME:TAG if the image was not pushed.
	Image string `json:"image" yaml:"image"`
	// Inputs is the checksum of the build inputs.
	Inputs string `json:"inputs,omitempty" yaml:"inputs,omitempty"`
	// Plugins are the names of the compiled-in plugins.
	Plugins []string `json:"plugins,omitempty" yaml:"plugins,omitempty"`
	// Configuration is the complete KubeSchedulerConfiguration in a config API of Release.
	Configuration Document `json:"configuration" yaml:"configuration"`
	// Args are kube-scheduler flags, --name=value each, that Configuration cannot express.
	Args []string `json:"args,omitempty" yaml:"args,omitempty"`
	// Rules are the permissions that plugins and Release need in addition to system:kube-scheduler.
	Rules Rules `json:"rules,omitempty" yaml:"rules,omitempty"`
}

// ApplyTo sets the release and its image in a request, and the configuration and the flags if the
// request has none. Its permissions are added.
func (r SchedulerRelease) ApplyTo(s *CustomSchedulerSpec) {
	s.Image.Reference, s.Source.Branch = r.Image, r.Release
	if c := &s.Configuration; c.Preset == "" && c.File == "" && c.Inline == "" {
		c.Inline = r.Configuration
	}
	if len(s.Args) == 0 {
		s.Args = slices.Clone(r.Args)
	}
	s.RBAC.Rules = slices.Concat(s.RBAC.Rules, r.Rules)
}

// releasesFile is an index as YAML.
type releasesFile struct {
	APIVersion string             `yaml:"apiVersion"`
	Kind       string             `yaml:"kind"`
	Releases   []SchedulerRelease `yaml:"releases"`
}

// DecodeReleases reads a release index strictly: an unknown field, a duplicate field and a second
// document are errors with their lines. It does not validate: see [SchedulerReleases.Validate].
func DecodeReleases(text []byte) (*SchedulerReleases, error) {
	const hint = "`pmk-sched build --branches v1.34,v1.35 --index releases.yaml` writes a release index"
	var file releasesFile
	if err := checkGivenType(text, ReleasesKind, hint); err != nil {
		return nil, err
	}
	if err := decodeOnly(text, &file, "release index"); err != nil {
		var rules *RulesError
		if errors.As(err, &rules) {
			rules.Field = "rules"
		}
		return nil, err
	}
	if err := checkType(file.APIVersion, file.Kind, ReleasesKind, hint); err != nil {
		return nil, err
	}
	index := &SchedulerReleases{Releases: file.Releases}
	index.APIVersion, index.Kind = APIVersion, ReleasesKind
	return index, nil
}

// Encode returns the index as YAML, which [DecodeReleases] reads.
func (s *SchedulerReleases) Encode() ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	file := releasesFile{APIVersion: APIVersion, Kind: ReleasesKind, Releases: s.Releases}
	if err := errors.Join(enc.Encode(file), enc.Close()); err != nil {
		return nil, fmt.Errorf("encode the release index: %w", err)
	}
	return out.Bytes(), nil
}

// Validate returns an error, with the field's path, for an index that no cluster can use.
func (s *SchedulerReleases) Validate() error {
	if len(s.Releases) == 0 {
		return &Error{text: "releases is empty"}
	}
	if len(s.Releases) > maxReleases {
		return &Error{text: fmt.Sprintf("releases has %d entries, at most %d are allowed", len(s.Releases), maxReleases)}
	}
	seen := map[string]bool{}
	for i, r := range s.Releases {
		if err := r.validate(); err != nil {
			return &Error{text: fmt.Sprintf("releases[%d]: %s", i, err), hint: err.hint}
		}
		if seen[r.Release] {
			return &Error{text: fmt.Sprintf("releases[%d]: duplicate release %s", i, r.Release)}
		}
		seen[r.Release] = true
	}
	return nil
}

// imageForm matches an image with a tag or a digest. The registry checks names further.
var imageForm = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/-]*(@sha256:[0-9a-f]{64})?$`)

func (r SchedulerRelease) validate() *Error {
	release, err := versions.Parse(r.Release)
	if err != nil {
		return &Error{text: "release: " + err.Error()}
	}
	if r.Minor != release.MinorString() {
		return &Error{text: fmt.Sprintf("minor is %q and release is %s", r.Minor, r.Release),
			hint: fmt.Sprintf("write minor: %q", release.MinorString())}
	}
	if !imageForm.MatchString(r.Image) {
		return &Error{text: fmt.Sprintf("invalid image %q", r.Image),
			hint: "write NAME:TAG, or NAME@sha256: and 64 hexadecimal digits"}
	}
	for _, arg := range r.Args {
		if name, _, _ := strings.Cut(arg, "="); !strings.HasPrefix(name, "--") || len(name) < 3 {
			return &Error{text: fmt.Sprintf("invalid flag %q in args", arg), hint: "write --name=value"}
		}
	}
	return r.validateConfiguration()
}

func (r SchedulerRelease) validateConfiguration() *Error {
	var head struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
	}
	if err := yaml.Unmarshal([]byte(r.Configuration), &head); err != nil {
		return &Error{text: "configuration: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if !strings.HasPrefix(head.APIVersion, "kubescheduler.config.k8s.io/") || head.Kind != "KubeSchedulerConfiguration" {
		return &Error{text: fmt.Sprintf("configuration: expected a KubeSchedulerConfiguration, got %s %q", head.APIVersion,
			head.Kind)}
	}
	return nil
}

// serverForm matches the versions that API servers, Helm and GitOps engines report: v1.34.7+k3s1,
// v1.34, and the minor of /version alone, which some servers report as 34+.
var serverForm = regexp.MustCompile(`^(?:v?1\.)?([0-9]{1,4})(?:\.[0-9]+)?(?:[-+].*)?$`)

// For returns the release for an API server that reports a version, such as v1.34.7+k3s1, or only
// the minor, such as v1.34 or 34+. The minors are equal. Among the minor's patches, For returns the
// newest that is not newer than the server. If all are newer it returns the oldest, because
// Kubernetes' version skew policy compares minors only. If the server's patch is unknown, For
// returns the newest. A version that is invalid and a minor that the index does not have are
// errors, a [*Error] and a [*MissingReleaseError].
func (s *SchedulerReleases) For(server string) (*SchedulerRelease, error) {
	match := serverForm.FindStringSubmatch(server)
	if match == nil {
		return nil, &Error{text: fmt.Sprintf("invalid version of an API server %q", server),
			hint: "a version is like v1.34.7+k3s1, v1.34 or 34+"}
	}
	minor := "1." + strings.TrimLeft(match[1], "0")
	limit, err := versions.FromServer(server)
	limited := err == nil
	var chosen *SchedulerRelease
	var best versions.Release
	for i := range s.Releases {
		release, err := versions.Parse(s.Releases[i].Release)
		if err != nil || release.MinorString() != minor {
			continue
		}
		if chosen == nil || prefer(release, best, limit, limited) {
			chosen, best = &s.Releases[i], release
		}
	}
	if chosen == nil {
		return nil, &MissingReleaseError{Minor: minor, Minors: s.Minors()}
	}
	return chosen, nil
}

// prefer reports whether a release fits better than the best one before, to a server with the
// release limit.
func prefer(release, best, limit versions.Release, limited bool) bool {
	if limited && best.Compare(limit) > 0 {
		return release.Compare(best) < 0
	}
	return release.Compare(best) > 0 && (!limited || release.Compare(limit) <= 0)
}

// Minors returns the index's minors, in its order, each once.
func (s *SchedulerReleases) Minors() []string {
	var minors []string
	seen := map[string]bool{}
	for _, r := range s.Releases {
		if !seen[r.Minor] {
			minors = append(minors, r.Minor)
		}
		seen[r.Minor] = true
	}
	return minors
}

// MissingReleaseError is returned for an API server minor that an index does not have.
type MissingReleaseError struct {
	// Minor of the API server, Minors of the index.
	Minor  string
	Minors []string
}

// Error returns the minor and the index's minors.
func (e *MissingReleaseError) Error() string {
	return fmt.Sprintf("no scheduler for Kubernetes %s: the release index has %s", e.Minor, strings.Join(e.Minors, ", "))
}

// Hint returns the command that adds the minor.
func (e *MissingReleaseError) Hint() string {
	return fmt.Sprintf("add v%s to the branches of `pmk-sched build --branches … --index releases.yaml`", e.Minor)
}

// DeepCopy returns a copy that shares nothing with s.
func (s *SchedulerReleases) DeepCopy() *SchedulerReleases {
	made := &SchedulerReleases{}
	// Both calls fail only for types that JSON cannot represent. An index has no such types.
	text, _ := json.Marshal(s)
	_ = json.Unmarshal(text, made)
	return made
}
