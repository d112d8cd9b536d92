package shadow

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
)

// An extender that binds pods binds them although the proxy passes no write.
func TestAnExtenderThatBindsIsRefused(t *testing.T) {
	for yaml, refused := range map[string]bool{
		"extenders: [{urlPrefix: http://a, filterVerb: filter}]":                    false,
		"extenders: [{urlPrefix: http://a}, {urlPrefix: http://b, bindVerb: bind}]": true,
		"profiles: [{schedulerName: packer}]":                                       false,
	} {
		err := adapt(&kubescheduler.Configuration{YAML: []byte(yaml)}, false)
		if (err != nil) != refused || refused && (!problem.IsInvalid(err) || !strings.Contains(err.Error(), "http://b")) {
			t.Errorf("%s: %v", yaml, err)
		}
	}
}

func TestAReleaseThatOrdersTiesGetsAnExtenderThatIsNotCalled(t *testing.T) {
	for yaml, want := range map[string]string{
		"profiles: [{schedulerName: packer}]": "extenders:\n- urlPrefix: http://127.0.0.1\nprofiles:\n- schedulerName: " +
			"packer\n",
		"extenders: [{urlPrefix: \"http://a\"}]": "extenders:\n- urlPrefix: http://a\n- urlPrefix: http://127.0.0.1\n",
	} {
		got := &kubescheduler.Configuration{YAML: []byte(yaml)}
		if err := adapt(got, true); err != nil || string(got.YAML) != want {
			t.Errorf("%s: got %s, %v; want %s", yaml, got.YAML, err, want)
		}
	}
}

func TestPodsAreScheduledByTheProfileOfTheObservedSchedulerIfThereIsOne(t *testing.T) {
	for want, n := range map[string]names{
		"packer": {observed: "default-scheduler", shadow: "packer", profiles: []string{"packer", "other"}},
		"default-scheduler": {observed: "default-scheduler", shadow: "packer",
			profiles: []string{"packer", "default-scheduler"}},
		"other": {observed: "default-scheduler", shadow: "packer", profiles: []string{"other"}},
	} {
		if got := n.profile(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
