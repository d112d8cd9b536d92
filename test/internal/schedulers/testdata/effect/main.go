// Command effect prints, as JSON, what the scheduler of a release makes of a
// configuration file: every setting in the release's own internal form, and the
// plugins that its framework runs at each extension point. It goes the way that
// kube-scheduler itself goes (app.Setup), up to where the scheduler would start.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/ioutil"
	"os"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file string) error {
	// At verbosity 2 the scheduler puts the profiles as completed by the framework
	// into the configuration, to log it.
	verbosity := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(verbosity)
	if err := verbosity.Parse([]string{"-v=2", "-logtostderr=false", "-stderrthreshold=FATAL"}); err != nil {
		return err
	}
	klog.SetOutput(ioutil.Discard)

	opts, err := newOptions()
	if err != nil {
		return err
	}
	opts.ConfigFile, opts.Master, opts.SecureServing.BindPort = file, "https://127.0.0.1:1", 0
	completed, scheduler, err := app.Setup(context.Background(), opts)
	if err != nil {
		return err
	}
	config := completed.ComponentConfig
	config.TypeMeta.APIVersion, config.TypeMeta.Kind = "", ""
	running := map[string]interface{}{}
	for name, framework := range scheduler.Profiles {
		running[name] = framework.ListPlugins()
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(map[string]interface{}{"configuration": config, "running": running})
}
