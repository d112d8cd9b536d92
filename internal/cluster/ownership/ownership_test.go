package ownership

import "testing"

func TestOwns(t *testing.T) {
	labels := Labels("a")
	if !Owns(labels, "a") || Owns(labels, "b") || Owns(nil, "") || Owns(map[string]string{LabelInstance: "a"}, "a") {
		t.Errorf("labels %v", labels)
	}
}
