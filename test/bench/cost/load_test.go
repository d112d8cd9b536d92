//go:build linux

package cost

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"
)

// serveLoad starts a server with the CPU load of the nodes, in the formats of Prometheus' query API
// and of the load watcher that the plugins of scheduler-plugins read. It returns its address.
func serveLoad(b *testing.B) string {
	b.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/query", func(w http.ResponseWriter, _ *http.Request) {
		var samples []any
		for i := range nodes {
			samples = append(samples, object{
				"metric": object{"instance": nodeName(i)}, "value": []any{time.Now().Unix(),
					strconv.FormatFloat(float64(percent(i))/100, 'f', 2, 64)},
			})
		}
		answer(b, w, object{"status": "success", "data": object{"resultType": "vector", "result": samples}})
	})
	mux.HandleFunc("/watcher", func(w http.ResponseWriter, _ *http.Request) {
		metrics := object{}
		for i := range nodes {
			metrics[nodeName(i)] = object{"metrics": []any{object{"name": "cpu", "type": "CPU", "operator": "AVG",
				"rollup": "15m", "value": percent(i)}}}
		}
		now := time.Now().Unix()
		answer(b, w, object{
			"timestamp": now, "window": object{"duration": "15m", "start": now - 900,
				"end": now}, "source": "Prometheus", "data": object{"NodeMetricsMap": metrics},
		})
	})
	server := httptest.NewServer(mux)
	b.Cleanup(server.Close)
	return server.URL
}

// percent is the load of a node.
func percent(i int) int { return 10 + i%60 }

func answer(b *testing.B, w http.ResponseWriter, content any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(content); err != nil {
		b.Log("answer a query for the load:", err)
	}
}
