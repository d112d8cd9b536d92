package kubescheduler

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// most bounds a request: very many nodes' names, and a pod.
const most = 64 << 20

// arguments are the fields of k8s.io/kube-scheduler/extender/v1, ExtenderArgs, that a service
// reads.
type arguments struct {
	Pod struct {
		Metadata struct{ Namespace, Name string }
		Spec     struct{ SchedulerName string }
	}
	NodeNames []string
}

// service runs extenders on loopback, one for each number. Close it.
type service struct {
	server *http.Server
	host   string
	url    string
	done   chan error
}

// startService starts a service. answer gets the extender's number and a call's arguments, and
// returns the verb's result.
func startService(
	verb string, answer func(ctx context.Context, number int, args *arguments) any,
) (*service, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the scheduler: %w", err)
	}
	path := "/" + rand.Text() // other users of the machine do not know it
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+path+"/{number}/"+verb, func(w http.ResponseWriter, request *http.Request) {
		number, err := strconv.Atoi(request.PathValue("number"))
		var args arguments
		if err == nil {
			err = json.NewDecoder(http.MaxBytesReader(w, request.Body, most)).Decode(&args)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		result := answer(request.Context(), number, &args)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(result) // the scheduler reports a lost answer
	})
	s := &service{
		server: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second},
		host:   listener.Addr().String(), url: "http://" + listener.Addr().String() + path, done: make(chan error, 1),
	}
	go func() { s.done <- s.server.Serve(listener) }()
	return s, nil
}

// Address returns the service's address. An extender's address is this one and its number, without
// the verb.
func (s *service) Address() string { return s.url }

// Host returns the service's host and port.
func (s *service) Host() string { return s.host }

// URL returns the address for the extender with a number, without the verb.
func (s *service) URL(number int) string { return s.url + "/" + strconv.Itoa(number) }

// Close stops the service and returns when it has ended. Calls may take until ctx is done.
func (s *service) Close(ctx context.Context) error {
	err := s.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.server.Close())
	}
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
