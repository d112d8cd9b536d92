//go:build ignore

package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/ioutil"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"example.com/probes/probe"
)

// driver runs the probe through the release's framework. It calls the framework by reflection and matches
// arguments by type, because signatures differ between releases.
type driver struct {
	ctx   context.Context
	fw    reflect.Value
	bound reflect.Value
	state *framework.CycleState
	infos []*framework.NodeInfo
	lines []string
}

func TestTranscript(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log := captureLog(t)
	metrics.Register()
	d := &driver{ctx: ctx, infos: nodes()}
	if _, err := d.framework(`{"greeting": "hello", "limits": {"cpu": 1, "memroy": 2}}`); err == nil {
		t.Fatal("an unknown argument was accepted")
	} else {
		d.say("unknown argument named: %v", strings.Contains(err.Error(), "memroy") && strings.Contains(err.Error(), probe.Name))
	}
	for i := 0; i < 2; i++ { // two profiles share the collector
		fw, err := d.framework(`{"greeting": "hello", "limits": {"cpu": 1}}`)
		if err != nil {
			t.Fatal(err)
		}
		d.fw = reflect.ValueOf(fw)
	}
	d.plugin()
	probe.Last.Look(ctx)
	d.flush("Handle")
	klog.Flush()
	d.say("log: five %v, six %v, error %v", strings.Contains(log.String(), "probe says five"), strings.Contains(log.String(), "probe says six"), strings.Contains(log.String(), "probe erred"))
	d.queue()
	for _, name := range []string{"normal", "skip"} {
		d.flush("a new node helps %s: %v", name, d.helps(pod(name), d.infos[0].Node()))
	}
	for _, name := range []string{"normal", "rejected", "broken"} {
		part, code := d.sign(pod(name))
		d.flush("sign %s: %v %s", name, part, code)
	}
	d.pods()
	d.say("metrics: %v", counted(t))
	if err := ioutil.WriteFile(os.Getenv("TRANSCRIPT"), []byte(strings.Join(d.lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (d *driver) say(format string, values ...interface{}) {
	d.lines = append(d.lines, fmt.Sprintf(format, values...))
}

// flush writes a line and the calls that the probe recorded since the last flush.
func (d *driver) flush(format string, values ...interface{}) {
	d.say(format, values...)
	d.lines = append(d.lines, probe.Last.Notes()...)
}

// captureLog redirects the log at level 5 to a buffer.
func captureLog(t *testing.T) *bytes.Buffer {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"v": "5", "logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	klog.SetOutput(&log)
	return &log
}

func counted(t *testing.T) bool {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "probe_calls_total" {
			return f.GetMetric()[0].GetCounter().GetValue() > 10
		}
	}
	return false
}

// framework returns the release's framework with only the probe, enabled at each of its extension points.
func (d *driver) framework(arguments string) (framework.Framework, error) {
	registry := frameworkruntime.Registry{}
	for _, add := range plugins() {
		if err := add(registry); err != nil {
			return nil, err
		}
	}
	d.capture(registry)
	enabled := &config.Plugins{}
	enable := func(plugin, points string) {
		for _, point := range strings.Split(points, ",") {
			field := reflect.ValueOf(enabled).Elem().FieldByName(point)
			if field.Kind() == reflect.Ptr {
				field.Set(reflect.New(field.Type().Elem()))
				field = field.Elem()
			}
			field.FieldByName("Enabled").Set(reflect.ValueOf([]config.Plugin{{Name: plugin, Weight: 1}}))
		}
	}
	enable(probe.Name, os.Getenv("POINTS"))
	if _, ok := registry["Gate"]; ok {
		enable("Gate", "PreEnqueue")
	}
	pluginConfig := []config.PluginConfig{{Name: probe.Name, Args: &runtime.Unknown{Raw: []byte(arguments), ContentType: runtime.ContentTypeJSON}}}
	kubeconfig := &rest.Config{Host: "http://apiserver.invalid/prefix"}
	client, err := kubernetes.NewForConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	options := append(moreOptions(kubeconfig),
		frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(client, 0)),
		frameworkruntime.WithSnapshotSharedLister(newLister(d.infos)))
	profile := &config.KubeSchedulerProfile{SchedulerName: "test", Plugins: enabled, PluginConfig: pluginConfig}
	constructor := reflect.ValueOf(frameworkruntime.NewFramework)
	results := call(constructor, []interface{}{d.ctx, d.ctx.Done(), registry, profile, enabled, pluginConfig}, options)
	err, _ = results[1].Interface().(error)
	fw, _ := results[0].Interface().(framework.Framework)
	return fw, err
}

// capture stores the plugin that the factory returns.
func (d *driver) capture(registry frameworkruntime.Registry) {
	factory := reflect.ValueOf(registry[probe.Name])
	registry[probe.Name] = reflect.MakeFunc(factory.Type(), func(in []reflect.Value) []reflect.Value {
		out := factory.Call(in)
		d.bound = out[0]
		return out
	}).Interface().(frameworkruntime.PluginFactory)
}

// call calls f with the values that match the types of its parameters; each value is used once.
func call(f reflect.Value, values []interface{}, options []frameworkruntime.Option) []reflect.Value {
	var in []reflect.Value
	used := map[int]bool{}
	for i := 0; i < f.Type().NumIn(); i++ {
		if f.Type().IsVariadic() && i == f.Type().NumIn()-1 {
			return f.CallSlice(append(in, reflect.ValueOf(options)))
		}
		found := false
		for j, v := range values {
			if !used[j] && !found && reflect.TypeOf(v).AssignableTo(f.Type().In(i)) {
				in, used[j], found = append(in, reflect.ValueOf(v)), true, true
			}
		}
		if !found {
			panic(fmt.Sprintf("no value for parameter %d of %v", i, f.Type()))
		}
	}
	return f.Call(in)
}

// run calls a method of the framework and returns its status and its other results.
func (d *driver) run(method string, values ...interface{}) (code string, reasons []string, others []reflect.Value) {
	f := d.fw.MethodByName(method)
	if !f.IsValid() {
		panic("the framework has no " + method)
	}
	code = "none"
	for _, r := range call(f, append([]interface{}{d.ctx, d.state}, append(values, d.nodeSlices(f)...)...), nil) {
		switch v := r.Interface().(type) {
		case *status:
			code = v.Code().String()
			if v != nil {
				reasons = v.Reasons()
			}
		default:
			if r.Kind() == reflect.Map && r.Type().Elem() == reflect.TypeOf(&status{}) { // by plugin, before 1.27
				code = "Success"
				for _, k := range r.MapKeys() {
					s := r.MapIndex(k).Interface().(*status)
					code, reasons = s.Code().String(), s.Reasons()
				}
				continue
			}
			others = append(others, r)
		}
	}
	return code, reasons, others
}

// nodeSlices returns the accepted nodes in the slice types that a method takes.
func (d *driver) nodeSlices(f reflect.Value) []interface{} {
	var all []interface{}
	for i := 0; i < f.Type().NumIn(); i++ {
		in := f.Type().In(i)
		if in.Kind() != reflect.Slice {
			continue
		}
		list := reflect.MakeSlice(in, 0, 2)
		for _, info := range d.infos[:2] {
			if v := reflect.ValueOf(info); v.Type().AssignableTo(in.Elem()) {
				list = reflect.Append(list, v)
			} else {
				list = reflect.Append(list, reflect.ValueOf(info.Node()))
			}
		}
		all = append(all, list.Interface())
	}
	return all
}

// events returns the events that the bound probe registers.
func (d *driver) events() reflect.Value {
	return call(d.bound.Elem().MethodByName("EventsToRegister"), []interface{}{d.ctx}, nil)[0]
}

// plugin writes the methods and events of the bound probe.
func (d *driver) plugin() {
	var methods []string
	bound := d.bound.Elem()
	for i := 0; i < bound.NumMethod(); i++ {
		switch name := bound.Type().Method(i).Name; name {
		case "Base", "Name", "PreBindPreFlight", "SignPod": // the last two from 1.34 and 1.35 on
		default:
			methods = append(methods, name)
		}
	}
	d.say("methods: %v", methods)
	events := d.events()
	for i := 0; i < events.Len(); i++ {
		e := events.Index(i)
		if hinted := e.FieldByName("Event"); hinted.IsValid() {
			e = hinted
		}
		action := e.FieldByName("ActionType")
		if !action.IsValid() {
			action = e.FieldByName("Action")
		}
		d.say("event: %s, node's: %v, all: %v", e.FieldByName("Resource"), action.Int() == nodeAction, action.Int() == anyAction)
	}
}

// queue compares pods.
func (d *driver) queue() {
	high, low := pod("high"), pod("low")
	seven := int32(7)
	high.Spec.Priority = &seven
	now := time.Now()
	a, b := queued(high, now, 3), queued(low, now.Add(-time.Hour), 0)
	less := d.fw.MethodByName("QueueSortFunc").Call(nil)[0]
	d.flush("high before low: %v, low before high: %v", call(less, []interface{}{a, b}, nil)[0], call(less, []interface{}{b, a}, nil)[0])
	if gate := d.fw.MethodByName("PreEnqueuePlugins"); gate.IsValid() && gate.Call(nil)[0].Len() > 0 {
		plugin := gate.Call(nil)[0].Index(0).Elem()
		for _, p := range []*corev1.Pod{pod("free"), pod("kept", "gated")} {
			s := call(plugin.MethodByName("PreEnqueue"), []interface{}{d.ctx, p}, nil)[0].Interface().(*status)
			if (s.Code().String() == "Success") != (p.Name == "free") {
				panic("PreEnqueue of " + p.Name + ": " + s.Code().String())
			}
		}
	}
}
