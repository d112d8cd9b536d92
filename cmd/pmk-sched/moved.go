package main

import "github.com/pmk-sched/pmk-sched/cmd/internal/command"

// moved are the flags that became commands.
func moved() []command.Moved {
	return []command.Moved{
		{Command: "build", Flag: "extender", To: "build extender"},
		{Command: "build", Flag: "self", To: "build self"},
		{Command: "render", Flag: "helm-chart", To: "render chart", As: "to-dir"},
		{Command: "render", Flag: "kustomize", To: "render kustomize", As: "to-dir"},
		{Command: "render", Flag: "monitoring", To: "render monitoring"},
		{Command: "render", Flag: "for", To: "render autoscaler", As: "for"},
		{Command: "upgrade", Flag: "simulate", To: "simulate upgrade"},
		{Command: "upgrade", Flag: "check", To: "upgrade check"},
		{Command: "simulate upgrade", Flag: "check", To: "simulate upgrade"},
	}
}

// synonyms are the names that kubectl, helm and others have for commands.
func synonyms() map[string]string {
	return map[string]string{
		"install": "deploy", "apply": "deploy", "delete": "uninstall", "remove": "uninstall", "get": "status",
		"list": "status", "describe": "explain", "lint": "check",
	}
}
