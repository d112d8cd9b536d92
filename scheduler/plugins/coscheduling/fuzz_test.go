package coscheduling

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// FuzzPodGroup reads the size and timeout of any PodGroup.
func FuzzPodGroup(f *testing.F) {
	f.Add([]byte(`{"spec": {"minMember": 4, "scheduleTimeoutSeconds": 120}}`))
	f.Add([]byte(`{"spec": {"minMember": 9223372036854775807, "scheduleTimeoutSeconds": 9223372036854775807}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var content map[string]interface{}
		if utiljson.Unmarshal(text, &content) != nil {
			return
		}
		read, err := readPodGroup(&unstructured.Unstructured{Object: content})
		if err != nil {
			return
		}
		if g := read.(podGroup); g.minMember < 1 || g.timeout < 0 || g.timeout > longestTimeout {
			t.Errorf("read %+v", g)
		}
	})
}
