package main

import (
	"bytes"
	"go/ast"
	"go/printer"
	"go/token"
)

const componentHelpers = "k8s.io/component-helpers"

// mirror is a Kubernetes function whose behavior this repository has by hand: no declaration shows
// a row for it.
type mirror struct{ file, function, ours string }

// mirrors are read when they change.
func mirrors() []mirror {
	const (
		scheduler = kubernetes + "/pkg/scheduler"
		requests  = componentHelpers + "/resource/helpers.go"
		amounts   = "scheduler/requests.go and its files _fromNN, _beforeNN"
	)
	return []mirror{
		{requests, "PodRequests", amounts},
		{requests, "AggregateContainerRequests", amounts},
		{requests, "addDRANodeAllocatableClaimResources", amounts},
		{scheduler + "/schedule_one.go", "prioritizeNodes", "versions/table.go OrderedTies, internal/foresight"},
		{scheduler + "/schedule_one.go", "extendersBinding", "versions/table.go IgnorableBind"},
		{scheduler + "/framework/runtime/framework.go", "expandMultiPointPlugins", "versions/table.go MultiPointTwice"},
		{scheduler + "/framework/runtime/framework.go", "getScoreWeights", "profiles/validate/startup.go"},
		{scheduler + "/framework/runtime/framework.go", "computeBatchablePlugins", "versions/table.go Batching"},
		{scheduler + "/extender.go", "NewHTTPExtender", "versions/table.go RequiresExtenderCA, profiles/validate"},
		{scheduler + "/scheduler.go", "buildExtenders", "versions/table.go RepeatsFit, profiles/validate"},
		{scheduler + "/backend/cache/cache.go", "addNodeImageStates", "versions/table.go StaleImageCounts"},
		{schedulerConfig + "/v1/default_plugins.go", "mergePluginSet", "profiles/schema/effective_plugins.go"},
		{schedulerConfig + "/v1/defaults.go", "SetDefaults_KubeSchedulerConfiguration", "profiles/presets.go, profiles/validate"},
		{schedulerConfig + "/validation/validation.go", "ValidateKubeSchedulerConfiguration", "profiles/validate"},
		{schedulerConfig + "/validation/validation.go", "validatePluginConfig", "profiles/validate/plugin_args.go"},
		{schedulerConfig + "/validation/validation.go", "validateCommonQueueSort", "profiles/validate/queue_sort.go"},
		{schedulerConfig + "/validation/validation_pluginargs.go", "ValidateNodeResourcesFitArgs", "profiles/validate"},
		{schedulerConfig + "/validation/validation_pluginargs.go", "ValidateDynamicResourcesArgs", "profiles/validate"},
		{schedulerConfig + "/validation/validation.go", "validateExtenders", "profiles/validate/extenders.go"},
		{
			kubernetes + "/cmd/kube-scheduler/app/options/options.go", "ApplyTo",
			"versions/table.go LeaderElectFlagsWithConfig, internal/deploy/manifest/args.go",
		},
		{
			kubernetes + "/pkg/kubelet/container/helpers.go", "pickFieldsToHash",
			"versions/table.go ComparesImagesOnly",
		},
	}
}

// checkMirrors reports functions that changed since the tested release before. Releases with rows
// were compared by hand.
func (c *comparison) checkMirrors() {
	c.begin("functions whose behavior is kept by hand", "read what changed")
	if c.before == nil || c.facts.Minor == c.source.release.Minor {
		return
	}
	for _, m := range mirrors() {
		now, then := c.source.function(m.file, m.function), c.before.function(m.file, m.function)
		switch {
		case now == "" && then == "":
			c.differ("neither release has %s in %s: name its successor in hack/facts/mirrors.go", m.function, m.file)
		case now != then:
			c.differ("%s in %s changed since %s: %s", m.function, m.file, c.before.release, m.ours)
		}
	}
}

// function returns the text of a function or method without comments, or "" if the file does not
// declare it.
func (s *source) function(file, name string) string {
	for _, decl := range s.file(file).Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Name.Name != name {
			continue
		}
		f.Doc = nil
		var text bytes.Buffer
		if err := printer.Fprint(&text, token.NewFileSet(), f); err != nil {
			return err.Error()
		}
		return text.String()
	}
	return ""
}
