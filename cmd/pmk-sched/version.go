package main

import (
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/versions"
)

// version is set by the linker (-X main.version=…).
var version string

// ownVersion is the version that the linker or `go install` recorded, or "dev".
func ownVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

type versionData struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Oldest and Newest are the supported Kubernetes minors.
	Oldest string `json:"oldestKubernetes"`
	Newest string `json:"newestKubernetes"`
}

func newVersionData() versionData {
	releases := versions.Releases()
	return versionData{
		Version:  ownVersion(),
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Oldest:   releases[len(releases)-1].MinorString(),
		Newest:   releases[0].MinorString(),
	}
}

func versionCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version of pmk-sched and the Kubernetes releases that it supports",
		UsageText: examples("pmk-sched version", "pmk-sched version -o json"),
		Flags:     []cli.Flag{outputFlag("")},
		Action: func(c *cli.Context) error {
			v := newVersionData()
			var p printer
			p.facts("pmk-sched", v.Version, "go", v.Go, "platform", v.Platform, "kubernetes", v.Oldest+" to "+v.Newest)
			return u.data(c.String("output"), v, p.String())
		},
	}
}
