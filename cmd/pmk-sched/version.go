package main

import "github.com/pmk-sched/pmk-sched/cmd/internal/command"

// version is set by the linker (-X main.version=…).
var version string

func ownVersion() string { return command.Version(version) }
