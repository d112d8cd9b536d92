package goversion_test

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/goversion"
)

func TestVersionsAreInTheOrderOfTheirReleases(t *testing.T) {
	ordered := []string{"1.18", "1.18.10", "1.21beta1", "1.21rc2", "1.21rc10", "1.21", "1.21.1", "1.100"}
	for i, a := range ordered {
		for j, b := range ordered {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := goversion.Compare(a, b); got != want {
				t.Errorf("Compare(%s, %s) is %d, want %d", a, b, got, want)
			}
		}
	}
	if goversion.Compare("1.18", "1.18.0") != 0 {
		t.Error("1.18 is not 1.18.0")
	}
}

func TestMinorOfAVersion(t *testing.T) {
	for version, want := range map[string]string{"1.18": "1.18", "1.18.10": "1.18", "1.26rc1": "1.26", "1.9beta2": "1.9",
		"": "", "devel": ""} {
		if got := goversion.Minor(version); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}
