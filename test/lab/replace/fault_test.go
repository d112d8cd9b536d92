//go:build linux

package replace

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// A replacement that cannot work is refused before anything is changed.
func TestReplaceRefusesWhatCannotWork(t *testing.T) {
	n := unchanged(t, labs.Shared(t, lab.LayoutKubeadm), manifests[lab.LayoutKubeadm])
	unknown := run.WriteFile(t, "unknown.yaml",
		"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nprofiles:\n- plugins: {score: "+
			"{enabled: [{name: NoSuchPlugin}]}}\n")
	for name, c := range map[string]struct {
		args  []string
		texts []string
	}{
		"image missing": {[]string{"--image", "localhost/not-there:v1"},
			[]string{"localhost/not-there:v1", "--load containerd"}},
		"unknown plugin": {[]string{"--image", n.Image(t, "timestamp"), "--config", unknown}, []string{"NoSuchPlugin"}},
		"wrong minor": {[]string{"--image", n.Faulty(t, "crash", "v1.25.4")},
			[]string{"v1.25.4", "v1.24.3"}},
		"nothing to do": {nil, []string{"--image"}},
	} {
		t.Run(name, func(t *testing.T) { n.replace(t, c.args...).Fails(t, 2, c.texts...) })
	}
	n.isOriginal(t)
}
