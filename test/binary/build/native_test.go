//go:build linux && releases

package build

import (
	"path/filepath"
	"strings"
	"testing"
)

// The plugins of the scheduling special interest group, in the version that is
// made for the minor, with a patch of Kubernetes that is not the one they name.
func TestPluginsOfAnotherProjectAreCompiledIn(t *testing.T) {
	const scheme = "sigs.k8s.io/scheduler-plugins/apis/config/scheme"
	for _, test := range []struct {
		release, module string
		packages        []string
		profile         string
		want            string
	}{
		{
			"v1.32.2", "sigs.k8s.io/scheduler-plugins@v0.32.7", []string{"pkg/coscheduling", "pkg/capacityscheduling"},
			"  plugins:\n    multiPoint: {enabled: [{name: Coscheduling}]}\n    queueSort: {enabled: [{name: Coscheduling}], " +
				"disabled: [{name: \"*\"}]}\n" +
				"  pluginConfig: [{name: Coscheduling, args: {permitWaitingTimeSeconds: 7}}]\n",
			"permitWaitingTimeSeconds: 7",
		},
		{"v1.34.2", "sigs.k8s.io/scheduler-plugins@v0.34.7", []string{
			"pkg/podstate"}, "  plugins: {multiPoint: {enabled: [{name: PodState}]}}\n", "name: PodState"},
	} {
		t.Run(test.release, func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"--branch", test.release, "--import", scheme}
			for _, pkg := range test.packages {
				args = append(args, "--with", test.module+":"+pkg)
			}
			b := build(t, dir, "scheduler", args...)
			if len(b.Plugins) != len(test.packages) {
				t.Errorf("plugins: %+v", b.Plugins)
			}
			out, err := configure(t, filepath.Join(dir, "scheduler"), "v1", test.profile)
			if err != nil || !strings.Contains(out, test.want) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
