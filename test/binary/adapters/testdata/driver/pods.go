//go:build ignore

package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"example.com/probes/probe"
)

// pods runs pods through the scheduling cycle.
func (d *driver) pods() {
	for _, name := range []string{"normal", "skip", "named", "rejected", "broken"} {
		d.state = framework.NewCycleState()
		p := pod(name)
		statuses := map[string]*status{}
		if d.filter(p, statuses) {
			d.postFilter(p, statuses)
			d.preempt(p)
			d.score(p)
		}
		d.preFlight(p)
		d.bind(p)
	}
	d.panics(pod("panicking"))
	for _, allow := range []bool{true, false} {
		d.state = framework.NewCycleState()
		p := pod(fmt.Sprint("waiting-", allow))
		code, _, others := d.run("RunPermitPlugins", p, "n1")
		d.hold(p, others)
		d.flush("permit %s: %s", p.Name, code)
		released := make(chan string)
		go func() {
			code, reasons, _ := d.run("WaitOnPermit", p)
			released <- fmt.Sprint(code, len(reasons) > 0)
		}()
		probe.Last.Decide(allow)
		d.flush("waiting %s: %s", p.Name, <-released)
	}
}

// panics checks that a panic is an error of the pod.
func (d *driver) panics(p *corev1.Pod) {
	d.state = framework.NewCycleState()
	d.run("RunPreFilterPlugins", p)
	code, reasons, _ := d.run("RunFilterPlugins", p, d.infos[0])
	d.flush("panic at filter: %s, in its reason: %v", code, strings.Contains(strings.Join(reasons, " "), "at the disco"))
}

// hold adds a waiting pod, which is a separate step from 1.36 on.
func (d *driver) hold(p *corev1.Pod, others []reflect.Value) {
	if add := d.fw.MethodByName("AddWaitingPod"); add.IsValid() {
		call(add, []interface{}{p, others[0].Interface()}, nil)
	}
}

// filter runs the PreFilter and Filter plugins, as findNodesThatFit does. It reports whether to
// continue.
func (d *driver) filter(p *corev1.Pod, statuses map[string]*status) bool {
	code, reasons, others := d.run("RunPreFilterPlugins", p)
	d.flush("prefilter %s: %s %s", p.Name, code, short(reasons))
	if code != "Success" && code != "Skip" {
		return false
	}
	eligible := map[string]bool{}
	for _, r := range others {
		if r.Kind() == reflect.Ptr && !r.IsNil() {
			set := r.Elem().FieldByName("NodeNames")
			for _, k := range set.MapKeys() {
				eligible[k.String()] = true
			}
		}
	}
	var accepted []string
	for _, info := range d.infos[:4] {
		name := info.Node().Name
		if len(eligible) > 0 && !eligible[name] {
			continue
		}
		code, reasons, _ := d.run("RunFilterPlugins", p, info)
		if code == "Success" {
			accepted = append(accepted, name)
		} else if !strings.Contains(strings.Join(reasons, ""), "didn't satisfy plugin") {
			d.say("filter %s %s: %s %s", p.Name, name, code, short(reasons))
			statuses[name] = newStatus(code, reasons)
		}
	}
	d.flush("accepted %s: %v", p.Name, accepted)
	return true
}

func (d *driver) postFilter(p *corev1.Pod, statuses map[string]*status) {
	code, reasons, others := d.run("RunPostFilterPlugins", p, rejections(statuses))
	nominated := ""
	for _, r := range others {
		if r.Kind() == reflect.Ptr && !r.IsNil() {
			nominated = r.Elem().FieldByName("NominatedNodeName").String()
		}
	}
	d.flush("postfilter %s: %s %s nominated %q", p.Name, code, short(reasons), nominated)
}

// preempt simulates pods on a node, in a copy of the state.
func (d *driver) preempt(p *corev1.Pod) {
	original := d.state
	d.state = cloned(original)
	other := pod("other")
	info := newPodInfo(other)
	for _, method := range []string{"RunPreFilterExtensionAddPod", "RunPreFilterExtensionAddPod", "RunPreFilterExtensionRemovePod"} {
		f := d.fw.MethodByName(method)
		var results []reflect.Value
		if f.Type().In(3) == reflect.TypeOf(other) {
			results = f.Call([]reflect.Value{reflect.ValueOf(d.ctx), reflect.ValueOf(d.state), reflect.ValueOf(p), reflect.ValueOf(other), reflect.ValueOf(d.infos[0])})
		} else {
			results = call(f, []interface{}{d.ctx, d.state, p, info, d.infos[0]}, nil)
		}
		d.flush("%s: %v", method, results[0].Interface().(*status).Code().String())
	}
	d.state = original
	if p.Name != "skip" {
		d.run("RunFilterPlugins", p, d.infos[0])
		d.flush("and the original is untouched")
	}
}

// score writes the scores of the accepted nodes, n1 and n2.
func (d *driver) score(p *corev1.Pod) {
	code, reasons, _ := d.run("RunPreScorePlugins", p)
	d.flush("prescore %s: %s %s", p.Name, code, short(reasons))
	code, reasons, others := d.run("RunScorePlugins", p)
	d.flush("score %s: %s %s %s", p.Name, code, short(reasons), scores(others[0]))
}

// scores formats scores that are grouped by plugin (until 1.26) or by node.
func scores(v reflect.Value) string {
	var all []string
	if v.Kind() == reflect.Map {
		for _, k := range v.MapKeys() {
			list := v.MapIndex(k)
			for i := 0; i < list.Len(); i++ {
				all = append(all, fmt.Sprint(list.Index(i).FieldByName("Name"), "=", list.Index(i).FieldByName("Score")))
			}
		}
	} else {
		for i := 0; i < v.Len(); i++ {
			name, list := v.Index(i).FieldByName("Name"), v.Index(i).FieldByName("Scores")
			total := int64(0)
			for j := 0; j < list.Len(); j++ {
				total += list.Index(j).FieldByName("Score").Int()
			}
			all = append(all, fmt.Sprint(name, "=", total))
		}
	}
	sort.Strings(all)
	return strings.Join(all, " ")
}

func (d *driver) bind(p *corev1.Pod) {
	for _, method := range []string{"RunReservePluginsReserve", "RunPermitPlugins", "RunPreBindPlugins", "RunBindPlugins", "RunPostBindPlugins", "RunReservePluginsUnreserve"} {
		code, reasons, _ := d.run(method, p, "n2")
		if method == "RunReservePluginsReserve" && code != "Success" {
			code = "given up" // older releases return an error
		}
		d.flush("%s %s: %s %s", method, p.Name, code, short(reasons))
	}
}

// short removes the text that releases add to the plugin's reasons.
func short(reasons []string) string {
	text := strings.Join(reasons, "; ")
	for _, words := range []string{"it broke", "no volume", "no score", "taken", "forbidden"} {
		if strings.Contains(text, words) {
			return words
		}
	}
	if strings.Contains(text, "running PreFilter plugin") && strings.Contains(text, "<nil>") {
		return "it broke" // 1.24 and 1.25 print the wrong variable
	}
	return text
}
