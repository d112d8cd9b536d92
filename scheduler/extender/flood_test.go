package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// memoryOfAPod is half of the memory limit of an extender that pmk-sched deploys.
const memoryOfAPod = 120 << 20

// dial opens a connection from an address.
func dial(ctx context.Context, from, to string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return d.DialContext(ctx, "tcp", to)
}

// announce opens a connection and sends the header of a filter request.
func announce(ctx context.Context, from, to string, size int) (net.Conn, error) {
	c, err := dial(ctx, from, to)
	if err == nil {
		_, err = fmt.Fprintf(c, "POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size)
	}
	return c, err
}

func TestRequestsGetThroughWhileClientsAnnounceLargeBodies(t *testing.T) {
	_, c := manyCached(5000)
	_, e := serveWith(t, filledCache(t, c...), Options{MaxMemory: memoryOfAPod}, labelled())
	address, _ := startServer(t, ServeOptions{}, e.Handler())
	list := &corev1.NodeList{}
	var all []string
	for _, object := range c {
		node := object.(*corev1.Node)
		list.Items, all = append(list.Items, *node), append(all, node.Name)
	}
	for range 8 {
		connection, err := announce(t.Context(), "127.0.0.1", address, 40<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
	}
	for name, args := range map[string]extenderv1.ExtenderArgs{"names": {Pod: newPod("p", "", 1), NodeNames: &all},
		"whole nodes": {Pod: newPod("p", "", 1), Nodes: list}} {
		text, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.Post("http://"+address+"/filter", "application/json", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(response.Body)
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if response.StatusCode != http.StatusOK || err != nil {
			t.Errorf("%s: %s %.200s, %v", name, response.Status, answer, err)
		}
	}
}

// manyCached returns nodes as manyNodes does, as objects of a cache.
func manyCached(n int) ([]string, []interface{}) {
	var names []string
	var objects []interface{}
	for _, node := range manyNodes(n) {
		names, objects = append(names, node.Name), append(objects, node)
	}
	return names, objects
}

// Bodies that stop arriving hold memory, until another request needs it. That request may have to
// come again, as a scheduler's does: the bodies end one after the other.
func TestLargeBodiesThatStallEndWhenMemoryIsShort(t *testing.T) {
	_, e := serveWith(t, nil, Options{MaxMemory: 32 << 20}, labelled())
	address, _ := startServer(t, ServeOptions{}, e.Handler())
	var stalled []net.Conn
	for range 8 {
		c, err := announce(t.Context(), "127.0.0.2", address, 20<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// The connection may have ended for the next one.
		_, _ = c.Write(make([]byte, 10<<20))
		stalled = append(stalled, c)
	}
	body := `{"NodeNames":["a"],"Pod":{"metadata":{"name":"` + strings.Repeat("a", 2<<20) + `"}}}`
	var statuses []int
	for len(statuses) < 20 && !slices.Contains(statuses, http.StatusOK) {
		response, err := http.Post("http://"+address+"/filter", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		statuses = append(statuses, response.StatusCode)
	}
	if !slices.Contains(statuses, http.StatusOK) {
		t.Errorf("answers with %d stalled bodies: %v", len(stalled), statuses)
	}
	if !slices.ContainsFunc(stalled, func(c net.Conn) bool {
		answer, _ := io.ReadAll(c) // it may be lost: the server has not read the whole body
		return strings.Contains(string(answer), errCrowded.Error())
	}) {
		t.Error("no stalled body ended for the request")
	}
}

func TestBodyThatStallsEnds(t *testing.T) {
	_, e := serveWith(t, nil, Options{}, labelled())
	address, _ := startServer(t, ServeOptions{}, e.Handler())
	c, err := announce(t.Context(), "127.0.0.1", address, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	began := time.Now()
	answer, err := io.ReadAll(c)
	if took := time.Since(began); err != nil || !strings.Contains(string(answer), "408 Request Timeout") ||
		took > DefaultBodyTime/2 {
		t.Errorf("after %s: %.200s, %v", took, answer, err)
	}
}

func TestCrowdEndsTheOldestOfTheAddressWithTheMost(t *testing.T) {
	var ended []string
	c, begin := newCrowd(5, 3), time.Now().Add(-time.Minute)
	enter := func(name, address string) {
		begin = begin.Add(time.Second)
		c.enter(name, address+":80", begin, func() { ended = append(ended, name) })
	}
	for _, m := range []string{"other-1 10.0.0.2", "a 10.0.0.1", "b 10.0.0.1", "c 10.0.0.1"} {
		name, address, _ := strings.Cut(m, " ")
		enter(name, address)
	}
	enter("d", "10.0.0.1") // the fourth of its address
	c.renew("b", time.Now(), false)
	enter("other-2", "10.0.0.2")
	enter("third-1", "10.0.0.3") // the sixth of all
	c.leave("third-1")
	c.leave("third-1")
	enter("third-2", "10.0.0.3")
	if want := []string{"a", "c"}; !slices.Equal(ended, want) {
		t.Errorf("ended %q, expected %q", ended, want)
	}
	c.endOlder(30 * time.Second)
	if slices.Sort(ended); !slices.Equal(ended, []string{"a", "c", "d", "other-1", "other-2", "third-2"}) ||
		len(c.members) != 1 || len(c.count) != 1 {
		t.Errorf("ended %q, left %v, %v", ended, c.members, c.count)
	}
}

// A body can have parts that take much memory where others have the names of nodes.
func TestEntriesBehindTheNamesAreCharged(t *testing.T) {
	m, l := newMemory(0), limits{nodes: 3}
	body := []byte(`{"a":0,"NodeNames":["x"],"Pod":{"spec":{"containers":[` + strings.Repeat("{},", 5000) + `{}]}},"z":["a"]}`)
	if cost, err := m.cost(body, l.pod()); err != nil || cost < 5000*entryMemory {
		t.Errorf("charged %d bytes, %v", cost, err)
	}
	whole := `{"Pod":{},"NodeNameToVictims":{"a":{"Pods":[{}]}}}`
	if _, err := decodePreemptArguments([]byte(whole), limits{nodes: 3, namesOnly: true}); err == nil {
		t.Error("victims as objects are decoded although only names are accepted")
	}
	small := newMemory(1 << 20)
	if _, err := small.cost(body, l.pod()); err == nil {
		t.Error("a body that needs more memory than there is is accepted")
	}
}

// flood is an extender whose clients need no certificate, and its clients.
type flood struct {
	t       *testing.T
	address string
	pid     int // 0 in this process
	sent    atomic.Int64
}

// startFlooded starts an extender of the policies ElasticQuota and NUMAAware: the program in the
// variable PMK_SCHED_TEST_EXTENDER with the memory limit of a deployed one, or a server in this
// process.
func startFlooded(t *testing.T, nodes []interface{}) *flood {
	t.Helper()
	objects := map[string][]interface{}{"nodes": nodes, "pods": {rejectedPod("web", "u-web", "")}}
	policies := policiesThatReject()
	for _, p := range policies {
		objects[p.resource] = append(objects[p.resource], p.object("1"))
	}
	api := startCluster(t, objects)
	if program := os.Getenv("PMK_SCHED_TEST_EXTENDER"); program != "" {
		return startProgram(t, program, api.URL)
	}
	handle, err := NewHandle(HandleOptions{Config: &rest.Config{Host: api.URL}, Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Handle: handle, NamesOnly: true, MaxMemory: memoryOfAPod}
	for name, p := range policies {
		plugin, err := p.New(t.Context(), NewArguments(nil).ForPlugin(), handle)
		if err != nil {
			t.Fatal(err)
		}
		o.Policies = append(o.Policies, Policy{Name: name, Plugin: plugin})
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := handle.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	address, _ := startServer(t, ServeOptions{}, e.Handler())
	return &flood{t: t, address: address}
}

func startProgram(t *testing.T, program, api string) *flood {
	t.Helper()
	dir := t.TempDir()
	kubeconfig := write(t, dir, "kubeconfig", []byte(fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
 clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}]}`, api)))
	config := write(t, dir, "extender.yaml", []byte(`{apiVersion: `+ConfigurationAPIVersion+`, kind: Extender,
 nodeCacheCapable: true, policies: [{name: ElasticQuota}, {name: NUMAAware}]}`))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, "--config", config, "--kubeconfig", kubeconfig,
		"--listen", address)
	command.Env = append(os.Environ(), "GOMEMLIMIT="+strconv.Itoa(256<<20/10*9))
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Wait() // it was killed
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the program's log ends with\n%s", text[max(0, len(text)-2000):])
		}
	})
	return &flood{t: t, address: address, pid: command.Process.Pid}
}

// memory returns the resident memory of the program, or the heap in use of this process.
func (f *flood) memory() int64 {
	if f.pid == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", f.pid))
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}

// attacks are what clients do again and again. Each ends when the extender ends its connection.
func (f *flood) attacks() []func(ctx context.Context, from string, i int) {
	post := func(ctx context.Context, from, body string) {
		c, err := announce(ctx, from, f.address, len(body))
		if err != nil {
			return
		}
		defer c.Close()
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
		// Errors are expected: the extender refuses what it likes.
		_, _ = io.WriteString(c, body)
		_, _ = c.Read(make([]byte, 1000))
	}
	var rubbish []string
	for _, size := range []int{20 << 10, 200 << 10} {
		for _, body := range hostile(size) {
			rubbish = append(rubbish, body)
		}
	}
	return []func(context.Context, string, int){
		func(ctx context.Context, from string, _ int) { // headers only
			if c, err := announce(ctx, from, f.address, 3<<20); err == nil {
				defer context.AfterFunc(ctx, func() { _ = c.Close() })()
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}
		},
		func(ctx context.Context, from string, _ int) { // a slow body after a quick part
			c, err := announce(ctx, from, f.address, 3<<20)
			if err != nil {
				return
			}
			defer c.Close()
			_, err = c.Write(make([]byte, 500<<10))
			for ; err == nil && ctx.Err() == nil; _, err = c.Write([]byte(" ")) {
				<-after(ctx, 50*time.Millisecond)
			}
		},
		func(ctx context.Context, from string, i int) { // invented UIDs
			pod := rejectedPod("web", fmt.Sprint("invented-", i), "")
			pod.Annotations = map[string]string{"long": strings.Repeat("a", 100<<10)}
			text, _ := json.Marshal(extenderv1.ExtenderArgs{Pod: pod, NodeNames: names("n")})
			post(ctx, from, string(text))
		},
		func(ctx context.Context, from string, i int) { // rubbish
			post(ctx, from, rubbish[i/4%len(rubbish)])
		},
	}
}

func after(ctx context.Context, d time.Duration) <-chan struct{} {
	ctx, cancel := context.WithTimeout(ctx, d)
	context.AfterFunc(ctx, cancel)
	return ctx.Done()
}

// Whatever clients without rights send, the scheduler's requests are answered, and the memory is
// bounded. Half of the clients have the address of the scheduler. With the variable SOAK, a
// duration, there are 200 clients.
func TestSchedulerGetsThroughAFlood(t *testing.T) {
	duration, attackers := 2*time.Second, 40
	if soak, err := time.ParseDuration(os.Getenv("SOAK")); err == nil {
		duration, attackers = soak, 200
	}
	var all []string
	var nodes []interface{}
	for i := range 5000 {
		n := newNode(fmt.Sprintf("ip-10-%d-%d-0.eu-central-1.compute.internal", i/250, i%250), nil)
		all, nodes = append(all, n.Name), append(nodes, n)
	}
	f := startFlooded(t, nodes)
	request, err := json.Marshal(extenderv1.ExtenderArgs{Pod: rejectedPod("web", "u-web", ""), NodeNames: &all})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: 30 * time.Second}
	ask := func() string {
		response, err := client.Post("http://"+f.address+"/filter", "application/json", bytes.NewReader(request))
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK || !bytes.HasSuffix(text, []byte(`,"Error":""}`)) {
			return fmt.Sprintf("%s %.200s, %v", response.Status, text, err)
		}
		return ""
	}
	eventually(t, "the cluster and the custom objects are read", func() (bool, string) {
		problem := ask()
		return problem == "", problem
	})
	quiet, cancel := context.WithTimeout(t.Context(), duration/10)
	defer cancel()
	f.schedule(quiet, ask)
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	var clients sync.WaitGroup
	attacks := f.attacks()
	for n := range attackers {
		from := "127.0.0.1"
		if n%8 >= 4 {
			from = fmt.Sprintf("127.0.1.%d", n)
		}
		clients.Go(func() {
			for i := n; ctx.Err() == nil; i += attackers {
				attacks[n%4](ctx, from, i)
				f.sent.Add(1)
				<-after(ctx, 100*time.Millisecond)
			}
		})
	}
	f.schedule(ctx, ask)
	clients.Wait()
}

// schedule sends 50 requests a second, and expects an answer to each. On a slow machine it sends
// fewer: schedulers wait for an answer before the next request.
func (f *flood) schedule(ctx context.Context, ask func() string) {
	const schedulers = 8
	running := make(chan struct{}, schedulers)
	var mu sync.Mutex
	var times []time.Duration
	var requests sync.WaitGroup
	refused, most := 0, int64(0)
	for every := time.NewTicker(time.Second / 50); ctx.Err() == nil; <-every.C {
		most = max(most, f.memory())
		select {
		case running <- struct{}{}:
		default:
			continue
		}
		requests.Go(func() {
			defer func() { <-running }()
			began := time.Now()
			problem := ask()
			mu.Lock()
			defer mu.Unlock()
			if times = append(times, time.Since(began)); problem == "" {
				return
			}
			if refused++; refused <= 5 {
				f.t.Errorf("request %d was refused: %s", len(times), problem)
			}
		})
	}
	requests.Wait()
	slices.Sort(times)
	f.t.Logf("%d requests, %d refused, p50 %s, p99 %s, slowest %s; %d attacks; memory at most %d MiB",
		len(times), refused, times[len(times)/2], times[len(times)*99/100], times[len(times)-1], f.sent.Load(), most>>20)
	if f.pid != 0 && most > 256<<20 {
		f.t.Errorf("the extender takes %d MiB", most>>20)
	}
}
