// Command effect prints, as JSON, the effect of configuration files on the scheduler of a release,
// a line for each: every setting in the release's own internal form, and the plugins that its
// framework runs at each extension point. It calls app.Setup, as kube-scheduler does, and ends
// before the scheduler would start.
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
	if err := quiet(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	encoder := json.NewEncoder(os.Stdout)
	for _, file := range os.Args[1:] {
		line, err := effect(file)
		if err != nil {
			line = map[string]interface{}{"error": err.Error()}
		}
		if err := encoder.Encode(line); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// quiet discards the log. At verbosity 2 the scheduler puts the profiles as completed by the framework into the configuration, to log it.
func quiet() error {
	verbosity := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(verbosity)
	err := verbosity.Parse([]string{"-v=2", "-logtostderr=false", "-stderrthreshold=FATAL"})
	klog.SetOutput(ioutil.Discard)
	return err
}

func effect(file string) (map[string]interface{}, error) {
	opts, err := newOptions()
	if err != nil {
		return nil, err
	}
	opts.ConfigFile, opts.Master, opts.SecureServing.BindPort = file, "https://127.0.0.1:1", 0
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	completed, scheduler, err := app.Setup(ctx, opts)
	if err != nil {
		return nil, err
	}
	config := completed.ComponentConfig
	config.TypeMeta.APIVersion, config.TypeMeta.Kind = "", ""
	running := map[string]interface{}{}
	for name, framework := range scheduler.Profiles {
		running[name] = framework.ListPlugins()
	}
	return map[string]interface{}{"configuration": config, "running": running}, nil
}
