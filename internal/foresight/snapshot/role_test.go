package snapshot_test

import (
	"encoding/json"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

func TestRoleHasOneReadingVerb(t *testing.T) {
	custom, err := snapshot.CustomKind("nodemetrics.example.com")
	if err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	for _, object := range snapshot.Role(snapshot.RoleName, "tools", append(snapshot.Kinds(), custom), "list") {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := snapshot.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, decoded)
	}
	equalObjects(t, "testdata/role.yaml", objects)
}
