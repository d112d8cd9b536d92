//go:build linux && labs

package conformance

import (
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/versions"
)

// firstEmbedded is the first minor whose suite compiles from its module. The suites of 1.20 and
// 1.21 need test/e2e/generated/bindata.go, which the build of Kubernetes generates and the module
// does not have.
const firstEmbedded = 22

// programSource runs the specs of test/e2e/scheduling with upstream's entry point, without the
// generated file: these specs read no files. All specs of scheduling are in that package.
const programSource = `package e2e

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

// program returns the options that build the suite of a release.
func program(release versions.Release) build.Options {
	o := build.Options{Release: release, Programs: []build.Program{
		{Name: "e2e.test", Package: "k8s.io/kubernetes/test/e2e", Test: true},
	}}
	if release.Minor < firstEmbedded {
		o.Programs[0].Package = "pmk-sched.io/build/e2e"
		o.Files = map[string][]byte{"e2e/e2e_test.go": []byte(programSource)}
	}
	return o
}
