package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

const (
	indexHead = "apiVersion: pmk-sched.io/v1alpha1\nkind: SchedulerReleases\n"
	document  = "\n  configuration: {apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration}\n"
)

var digest = "registry.example.com/kube-scheduler@sha256:" + strings.Repeat("0a", 32)

func decodeReleases(t *testing.T, text string) *v1alpha1.SchedulerReleases {
	t.Helper()
	index, err := v1alpha1.DecodeReleases([]byte(text))
	if err == nil {
		err = index.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func TestReleaseIndexIsReadAsItWasWritten(t *testing.T) {
	index := decodeReleases(t, indexHead+`releases:
- minor: "1.34"
  release: v1.34.2
  image: `+digest+`
  inputs: 0a0b
  plugins: [timestamp]
  configuration: |
    # the comment stays
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
  args: [--v=2]
  rules:
  - {apiGroups: [""], resources: [pods], verbs: [patch]}
`)
	text, err := index.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(index, decodeReleases(t, string(text))); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(index, index.DeepCopy()); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
	for _, want := range []string{"    # the comment stays\n", "apiGroups:", `minor: "1.34"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the index has no %q:\n%s", want, text)
		}
	}
}

func TestInvalidReleaseIndexesAreRefused(t *testing.T) {
	entry := func(minor, release, image string) string {
		return "- minor: \"" + minor + "\"\n  release: " + release + "\n  image: " + image
	}
	good := entry("1.34", "v1.34.2", digest) + document
	refused := refusals{}
	for text, want := range map[string]string{
		"":                               "the file is empty",
		"kind: X\n":                      `expected a SchedulerReleases, got  "X"`,
		indexHead:                        "releases is empty",
		indexHead + "---\n":              "a second document",
		indexHead + "items: []":          "line 3: unknown field items",
		indexHead + "releases: [{x: 1}]": "line 3: unknown field x",
		indexHead + "releases: [":        "line 3",
		indexHead + "releases:\n" + good + "  rules: [{verb: [get]}]": `line 8: rules: unknown field "verb"`,
		indexHead + "releases:\n" + good + "  rules: [{verbs: [get]}]": "line 8: rules[0] needs verbs, and apiGroups and " +
			"resources",
		indexHead + "releases:\n" + good + "  args: [v=2]":       `releases[0]: invalid flag "v=2" in args`,
		indexHead + "releases:\n" + good + "  args: [--a=b, --]": `releases[0]: invalid flag "--" in args`,
		indexHead + "releases:\n" + good + "  args: [--=b]":      `releases[0]: invalid flag "--=b" in args`,
		indexHead + "releases:\n" + entry("1.34", "v1.34.2", "a:b") + "\n  configuration: {apiVersion: kubescheduler.config.k8s.io/v1, kind: Policy}": "releases[0]: configuration: expected a KubeSchedulerConfiguration",
		indexHead + "releases:\n" + good + good:                                       "releases[1]: duplicate release v1.34.2",
		indexHead + "releases:\n" + entry("1.33", "v1.34.2", digest) + document:       `releases[0]: minor is "1.33" and release is v1.34.2`,
		indexHead + "releases:\n" + entry("1.34", "v1.34", digest) + document:         "releases[0]: release: ",
		indexHead + "releases:\n" + entry("1.34", "v1.34.2", "a@sha256:1") + document: `releases[0]: invalid image "a@sha256:1"`,
		indexHead + "releases:\n" + entry("1.34", "v1.34.2", `""`) + document:         `releases[0]: invalid image ""`,
		indexHead + "releases:\n" + entry("1.34", "v1.34.2", "a:b"): "releases[0]: configuration: expected a " +
			"KubeSchedulerConfiguration",
		indexHead + "releases:\n" + entry("1.34", "v1.34.2", "a:b") + "\n  configuration: '{'": "releases[0]: configuration: line 1",
	} {
		index, err := v1alpha1.DecodeReleases([]byte(text))
		if err == nil {
			err = index.Validate()
		}
		refused[strings.NewReplacer(indexHead, "…\n", digest, "DIGEST").Replace(text)] = err
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "v1alpha1.") {
			t.Errorf("%q: got %v, want %q", strings.TrimPrefix(text, indexHead), err, want)
		}
	}
	refused.equal(t, "refused-releases.txt")
}

// The schema has the same limit.
func TestReleaseIndexHasALimit(t *testing.T) {
	for n, want := range map[int]string{200: "", 201: "releases has 201 entries, at most 200 are allowed"} {
		index := &v1alpha1.SchedulerReleases{}
		for i := range n {
			index.Releases = append(index.Releases, v1alpha1.SchedulerRelease{
				Minor: "1.34", Release: fmt.Sprintf("v1.34.%d", i), Image: digest})
		}
		err := index.Validate()
		if got := fmt.Sprint(err); want != "" && got != want || want == "" && strings.Contains(got, "entries") {
			t.Errorf("%d releases: got %v, want %q", n, err, want)
		}
	}
}

func TestReleaseOfAServer(t *testing.T) {
	index := &v1alpha1.SchedulerReleases{}
	for _, release := range []string{"v1.34.2", "v1.34.7", "v1.34.5", "v1.29.2", "v1.30.0-rc.1", "v1.30.0"} {
		index.Releases = append(index.Releases, v1alpha1.SchedulerRelease{Minor: release[1:5], Release: release})
	}
	for server, want := range map[string]string{
		"v1.34":            "v1.34.7",
		"34+":              "v1.34.7",
		"34":               "v1.34.7",
		"1.34":             "v1.34.7",
		"v1.34+":           "v1.34.7",
		"v1.34.7+k3s1":     "v1.34.7",
		"v1.34.9":          "v1.34.7",
		"v1.34.6-eks-036c": "v1.34.5",
		"v1.34.3":          "v1.34.2",
		"v1.34.0":          "v1.34.2", // all are newer
		"v1.29.10":         "v1.29.2",
		"v1.30.0-rc.2":     "v1.30.0-rc.1",
		"v1.30.0":          "v1.30.0",
	} {
		got, err := index.For(server)
		if err != nil || got.Release != want {
			t.Errorf("%s: got %v, %v, want %s", server, got, err, want)
		}
	}
	refused := refusals{}
	for server, want := range map[string]string{
		"v1.35.1":  "no scheduler for Kubernetes 1.35: the release index has 1.34, 1.29, 1.30",
		"v1.3":     "no scheduler for Kubernetes 1.3:",
		"v2.34.0":  "invalid version of an API server",
		"":         "invalid version of an API server",
		"v1.34x":   "invalid version of an API server",
		"v1.34.1x": "invalid version of an API server",
	} {
		got, err := index.For(server)
		refused[server] = err
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want %q", server, got, err, want)
		}
	}
	refused.equal(t, "refused-servers.txt")
}

// Bytes of any kind are an index or an error, and an index is read as it was written.
func FuzzReleases(f *testing.F) {
	f.Add([]byte(indexHead+"releases:\n- minor: \"1.34\"\n  release: v1.34.2\n  image: "+digest+document), "v1.34.7+k3s1")
	f.Add([]byte(indexHead+"releases: [{rules: [{verbs: [get]}]}]"), "34+")
	f.Add([]byte(indexHead+"releases: [{configuration: '{'}]"), "v1.34")
	f.Fuzz(func(t *testing.T, text []byte, server string) {
		index, err := v1alpha1.DecodeReleases(text)
		if err != nil {
			return
		}
		if _, err := index.For(server); err != nil && err.Error() == "" {
			t.Error("an error without a text")
		}
		if index.Validate() != nil {
			return
		}
		written, err := index.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := v1alpha1.DecodeReleases(written)
		if err != nil || len(again.Releases) != len(index.Releases) {
			t.Errorf("got %v from\n%s", err, written)
		}
	})
}
