//go:build linux && labs

package conformance

import (
	"errors"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	// firstEmbedded is the first minor whose suite compiles from its module. The suites of 1.20 and
	// 1.21 need test/e2e/generated/bindata.go, which the build of Kubernetes generates and the module
	// does not have.
	firstEmbedded = 22
	// firstInit is the first minor whose suite configures its framework with packages that it imports.
	firstInit = 26
	// firstDRA is the first minor with specs in the focus that are not in test/e2e/scheduling.
	firstDRA = 34
)

// partSource runs the specs of test/e2e/scheduling, before 1.34 all in the focus, with upstream's
// entry point and without the files of the suite, which these specs do not read.
const partSource = `package e2e

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"k8s.io/kubernetes/test/e2e"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	_ "k8s.io/kubernetes/test/e2e/scheduling"
	"k8s.io/kubernetes/test/utils/image"
	// more imports
)

func TestMain(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	if framework.TestContext.ListImages {
		for _, config := range image.GetImageConfigs() {
			fmt.Println(config.GetE2EImage())
		}
		return
	}
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

func TestE2E(t *testing.T) { e2e.RunE2ETests(t) }
`

// compileSuite compiles the suite of a release, or only its part of scheduling if the suite cannot
// be compiled from modules: it lacks a file, or imports a module that the proxy does not serve.
func compileSuite(t *testing.T, release versions.Release) (string, error) {
	t.Helper()
	program := build.Program{Name: "e2e.test", Package: "k8s.io/kubernetes/test/e2e", Test: true}
	if release.Minor >= firstEmbedded {
		path, err := controlplane.Build(t.Context(), build.Options{Release: release, Programs: []build.Program{program}})
		var failed *build.Error
		if !errors.As(err, &failed) || failed.Cause != build.CauseModuleMissing || release.Minor >= firstDRA {
			return path, err
		}
		t.Logf("only the part of scheduling is compiled: %v", err)
	}
	source := partSource
	if release.Minor >= firstInit {
		source = strings.Replace(source, "// more imports", `_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"`, 1)
	}
	program.Package = "pmk-sched.io/build/e2e"
	return controlplane.Build(t.Context(), build.Options{
		Release: release, Programs: []build.Program{program},
		Files: map[string][]byte{"e2e/e2e_test.go": []byte(source)},
	})
}
