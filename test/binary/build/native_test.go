//go:build linux && releases

package build

import (
	"errors"
	"io/fs"
	"os"
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

// The scheme of scheduler-plugins has the arguments of all its plugins, also of its Coscheduling. A
// scheduler with the bundled Coscheduling would read the arguments of the latter as those, and not
// start.
func TestBundledPluginWhoseArgumentsAnotherProjectRegistersNeedsAnotherName(t *testing.T) {
	const scheme = "sigs.k8s.io/scheduler-plugins/apis/config/scheme"
	dir := t.TempDir()
	native := []string{"--branch", "v1.34.2", "--with", "sigs.k8s.io/scheduler-plugins@v0.34.7:pkg/podstate", "--import",
		scheme}
	refused := append([]string{"build", "--binary", "refused", "--with", "builtin:coscheduling"}, native...)
	pmkSched(t, dir, refused...).Fails(t, 2,
		"plugin Coscheduling: package sigs.k8s.io/scheduler-plugins/apis/config/v1 registers the kind CoschedulingArgs",
		"register a bundled plugin by another name, such as builtin:coscheduling=MyCoscheduling")
	if _, err := os.Stat(filepath.Join(dir, "refused")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the scheduler was written: %v", err)
	}

	b := build(t, dir, "scheduler", append([]string{"--with", "builtin:coscheduling=Gangs"}, native...)...)
	if len(b.Plugins) != 2 || b.Plugins[0].Name != "Gangs" {
		t.Errorf("plugins: %+v", b.Plugins)
	}
	for args, want := range map[string]string{"timeout: 2m": "timeout: 2m", "timeot: 2m": `unknown field \"timeot\"`} {
		out, _ := configure(t, filepath.Join(dir, "scheduler"), "v1", "  plugins: {multiPoint: {enabled: [{name: "+
			"PodState}, {name: Gangs}]}}\n  pluginConfig: [{name: Gangs, args: {"+args+"}}]\n")
		if !strings.Contains(out, want) {
			t.Errorf("%s: got %s", args, out)
		}
	}
}
