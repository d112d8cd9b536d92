package permissions_test

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/permissions"
)

func TestOnlyPackagesOfThisProjectHaveBundledPermissions(t *testing.T) {
	const bundled = "github.com/pmk-sched/pmk-sched/scheduler/plugins/"
	for path, want := range map[string]bool{
		bundled + "timestamp": true, bundled + "numaaware": true, bundled + "absent": false, bundled: false,
		bundled + "timestamp/internal": false, "example.com/scheduler/plugins/timestamp": false, "timestamp": false,
	} {
		if got := permissions.OfPackage(path) != nil; got != want {
			t.Errorf("%s: permissions %t, want %t", path, got, want)
		}
	}
}
