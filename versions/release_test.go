package versions

import (
	"errors"
	"strings"
	"testing"

	goversion "github.com/hashicorp/go-version"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want string // empty: refused
		try  string // the suggestion of the error
	}{
		{in: "v1.24.3", want: "v1.24.3"},
		{in: "1.24.3", want: "v1.24.3"},
		{in: "v1.37.0-rc.1", want: "v1.37.0-rc.1"},
		{in: "v1.31.0-alpha.12", want: "v1.31.0-alpha.12"},
		{in: "", try: "v1.24.3"},
		{in: "latest", try: "v1.24.3"},
		{in: "master", try: "v1.24.3"},
		{in: "v1.24", try: "v1.24.3"},
		{in: "1.37", try: "v1.37.1"},
		{in: "release-1.28", try: "v1.28.15"},
		{in: "v1.25.x", try: "v1.25.4"},
		{in: "v1.3", try: "v1.24.3"},
		{in: "v1.2x.y", try: "v1.24.3"},
		{in: "v1.24.3.1", try: "v1.24.3"},
		{in: "vv1.24.3", try: "v1.24.3"},
		{in: "v1.24.03", try: "v1.24.3"},
		{in: " v1.24.3", try: "v1.24.3"},
		{in: "v1.24.3\n", try: "v1.24.3"},
		{in: "v1.29.3-eks-036c24b", try: "v1.29.3"},
		{in: "v1.29.4+k3s1", try: "v1.29.4"},
		{in: "v1.31.0-rc.1.45+abcdef", try: "v1.31.0-rc.1"},
		{in: "v1.99999999999999999999.0", try: "v1.24.3"},
		{in: "v-1.24.3", try: "v1.24.3"},
		{in: strings.Repeat("1", 4096), try: "v1.24.3"},
	} {
		t.Run(tc.in[:min(len(tc.in), 40)], func(t *testing.T) {
			got, err := Parse(tc.in)
			if tc.want != "" {
				if err != nil || got.String() != tc.want {
					t.Fatalf("Parse(%q) = %v, %v; want %s", tc.in, got, err, tc.want)
				}
				return
			}
			var invalid *Error
			if !errors.As(err, &invalid) || !invalid.Invalid() {
				t.Fatalf("Parse(%q) = %v, %v; want an *Error", tc.in, got, err)
			}
			if !strings.HasSuffix(invalid.Hint(), tc.try) {
				t.Errorf("Parse(%q) offers %q; want it to name %s", tc.in, invalid.Hint(), tc.try)
			}
			if got != (Release{}) {
				t.Errorf("Parse(%q) = %v with an error", tc.in, got)
			}
		})
	}
}

func TestFromServer(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"v1.24.3", "v1.24.3"},
		{"v1.29.3-eks-036c24b", "v1.29.3"},
		{"v1.25.3-gke.100", "v1.25.3"},
		{"v1.27.16-gke.1051001", "v1.27.16"},
		{"v1.29.4+k3s1", "v1.29.4"},
		{"v1.29.4-rc1+k3s1", "v1.29.4"},
		{"v1.33.4+rke2r1", "v1.33.4"},
		{"v1.29.4+k0s", "v1.29.4"},
		{"v1.27.3+4aaeaec", "v1.27.3"},
		{"v1.26.3-aliyun.1", "v1.26.3"},
		{"v1.24.4-12+0c1ab2d3e4f5a6", "v1.24.4"},
		{"v1.24.3-dirty", "v1.24.3"},
		{"v1.31.0-rc.1", "v1.31.0-rc.1"},
		{"v1.31.0-beta.0", "v1.31.0-beta.0"},
		{"v1.31.0-alpha.3.27+0c1ab2d3e4f5a6", "v1.31.0-alpha.3"},
		{"v1.31.0-rc.1-dirty", "v1.31.0-rc.1"},
		{"v1.31.0-rcx.1", "v1.31.0"},
		{"", ""},
		{"v1.24", ""},
		{"v1.24.", ""},
		{"v1.24.3.4", ""},
		{"v1.24.3rc1", ""},
		{"v0.0.0-master+$Format:%H$", ""},
		{"not a version", ""},
	} {
		got, err := FromServer(tc.in)
		if (err != nil) != (tc.want == "") {
			t.Errorf("FromServer(%q) = %v, %v; want %q", tc.in, got, err, tc.want)
			continue
		}
		if err == nil && got.String() != tc.want {
			t.Errorf("FromServer(%q) = %v; want %s", tc.in, got, tc.want)
		}
	}
}

// A constraint of go-version does not match a version with a suffix. Select must, so it only uses
// the core of the version.
func TestSelectIgnoresVersionSuffix(t *testing.T) {
	constraint, err := goversion.NewConstraint(">= 1.25, < 1.30")
	if err != nil {
		t.Fatal(err)
	}
	for reported, plainMatch := range map[string]bool{
		"v1.25.3-gke.100":     false,
		"v1.29.3-eks-036c24b": false,
		"v1.25.0-rc.1":        false,
		"v1.29.4+k3s1":        true,
		"v1.29.4":             true,
	} {
		v, err := goversion.NewVersion(reported)
		if err != nil {
			t.Fatal(err)
		}
		if constraint.Check(v) != plainMatch {
			t.Errorf("constraint on %s = %v: the trap this test describes has changed", reported, !plainMatch)
		}
		if !constraint.Check(v.Core()) {
			t.Errorf("constraint on the core of %s does not match", reported)
		}
		release, err := FromServer(reported)
		if err != nil {
			t.Fatal(err)
		}
		rules, err := Select(release)
		if err != nil || rules.Preferred != ConfigV1 {
			t.Errorf("Select(%s) = %q, %v; want %q", reported, rules.Preferred, err, ConfigV1)
		}
	}
}

func TestReleaseStrings(t *testing.T) {
	r := Release{Major: 1, Minor: 24, Patch: 3}
	rc := Release{Major: 1, Minor: 37, PreRelease: "rc.1"}
	for _, tc := range []struct{ got, want string }{
		{r.String(), "v1.24.3"},
		{r.MinorString(), "1.24"},
		{r.Staging(), "v0.24.3"},
		{rc.String(), "v1.37.0-rc.1"},
		{rc.MinorString(), "1.37"},
		{rc.Staging(), "v0.37.0-rc.1"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %s, want %s", tc.got, tc.want)
		}
	}
	if r.IsZero() || !(Release{}).IsZero() {
		t.Error("IsZero is true for a release or false for none")
	}
}

func TestCompare(t *testing.T) {
	inOrder := []string{
		"v1.9.9", "v1.20.0", "v1.24.3", "v1.24.10", "v1.31.0-alpha.2", "v1.31.0-alpha.10", "v1.31.0-beta.0",
		"v1.31.0-rc.1", "v1.31.0", "v1.31.1", "v2.0.0",
	}
	for i, a := range inOrder {
		for j, b := range inOrder {
			x, errX := Parse(a)
			y, errY := Parse(b)
			if errX != nil || errY != nil {
				t.Fatal(errX, errY)
			}
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := x.Compare(y); got != want {
				t.Errorf("%s.Compare(%s) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func FuzzFromServerNeverPanics(f *testing.F) {
	for _, s := range []string{"v1.24.3", "v1.29.3-eks-036c24b", "1.2.3-", "v1.31.0-rc.1.45+abc", "v~"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		release, err := FromServer(s)
		if err != nil {
			return
		}
		again, err := Parse(release.String())
		if err != nil || again != release {
			t.Errorf("FromServer(%q) = %s, which reads back as %v, %v", s, release, again, err)
		}
	})
}

func TestABranchOfAMinorHasATestedPatch(t *testing.T) {
	for _, release := range Releases() {
		for _, prefix := range []string{"v", "", "release-"} {
			branch := prefix + release.MinorString()
			if got, ok := TestedPatch(branch); !ok || got != release {
				t.Errorf("%s: got %s, %t, want %s", branch, got, ok, release)
			}
		}
	}
	for _, branch := range []string{"", "auto", "v1.24.3", "v1.2", "1.99"} {
		if got, ok := TestedPatch(branch); ok {
			t.Errorf("%s: got %s", branch, got)
		}
	}
}
