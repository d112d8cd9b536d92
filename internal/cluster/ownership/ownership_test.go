package ownership

import "testing"

func TestOwns(t *testing.T) {
	labels := Labels("a")
	if !Owns(labels, "a") || Owns(labels, "b") || Owns(nil, "") || Owns(map[string]string{LabelInstance: "a"}, "a") {
		t.Errorf("labels %v", labels)
	}
}

func TestSchedulersOfOtherChartsAreNotInstalledByPmkSched(t *testing.T) {
	for _, c := range []struct {
		manager, release string
		want             bool
	}{
		{Manager, "", true}, {Manager, "v1.24.3", true}, {Helm, "v1.24.3", true}, {Helm, "", false},
		{"other", "v1.24.3", false}, {"", "", false},
	} {
		if got := IsInstalled(map[string]string{LabelManagedBy: c.manager, LabelRelease: c.release}); got != c.want {
			t.Errorf("managed by %q, release %q: %t", c.manager, c.release, got)
		}
	}
}
