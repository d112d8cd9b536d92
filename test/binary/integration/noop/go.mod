module example.com/noop

go 1.15

require github.com/pmk-sched/pmk-sched v0.0.0
