package command

import (
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Version returns the version of a program: the given one, which the linker sets, or the one that
// `go install` recorded, or "dev".
func Version(linked string) string {
	if linked != "" {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// versionFlag prints what [VersionCommand] prints.
const versionFlag = "version"

type versionData struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Oldest and Newest are the supported Kubernetes minors.
	Oldest string `json:"oldestKubernetes"`
	Newest string `json:"newestKubernetes"`
}

// VersionCommand prints the version of the program.
func VersionCommand(u *UI, program string) *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version of " + program + " and the Kubernetes releases that it supports",
		UsageText: Examples("pmk-sched version", "pmk-sched version -o json"),
		Flags:     []cli.Flag{OutputFlag("")},
		Action:    func(c *cli.Context) error { return u.printVersion(program, c.String("output")) },
	}
}

func (u *UI) printVersion(program, format string) error {
	releases := versions.Releases()
	v := versionData{
		Version: u.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Oldest: releases[len(releases)-1].MinorString(), Newest: releases[0].MinorString(),
	}
	var p Printer
	p.Facts(program, v.Version, "go", v.Go, "platform", v.Platform, "kubernetes", v.Oldest+" to "+v.Newest)
	return u.Data(format, v, p.String())
}
