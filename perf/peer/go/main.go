/* SPDX-License-Identifier: MIT */

// Runs the harness's workloads on Go's time.AfterFunc and Timer.Stop:
//
//	go-peer WORKLOAD [ops=N] [producers=N] [live=N]
//
// The output is in the format that perf/peer/external.c reads. Small rounds of the workload warm up
// heap and threads. Then the workload runs once, measured. Ids and delays are those of the
// harness's own producers (perf/harness/random.h). Two more arguments have defaults: seed=N for the
// first producer's delays, and warm=N for the least milliseconds of warm-up.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	warmOps       = 300000
	warmLive      = 100000
	latenessEvery = 8
	lightPeriod   = time.Millisecond
	waitExpired   = 120 * time.Second
	/* The garbage collector starts when the heap has this size, not at twice the live heap. */
	memoryLimit = 4 << 30
)

/* time.Since(base) reads only the monotonic clock; time.Now reads two clocks. */
var base = time.Now()

func now() time.Duration {
	return time.Since(base)
}

type random struct {
	state uint64
}

func (r *random) below(bound uint64) uint64 {
	x := r.state
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	r.state = x
	return ((x * 0x2545f4914f6cdd1d) >> 32) * bound >> 32
}

/* Returns a uniformly distributed delay in [fromUs, toUs) microseconds. */
func (r *random) delay(fromUs, toUs uint64) time.Duration {
	return time.Duration(fromUs+r.below(toUs-fromUs)) * time.Microsecond
}

type tally struct {
	count, idSum uint64
}

func (t *tally) add(id uint64) {
	t.count++
	t.idSum += id
}

func (t *tally) merge(from tally) {
	t.count += from.count
	t.idSum += from.idSum
}

/* Counts with atomics, because callbacks are goroutines, of which many may run at once. */
type expired struct {
	tally
	lateness     []time.Duration
	latenessUsed int64
}

func (e *expired) add(id uint64) {
	atomic.AddUint64(&e.idSum, id)
	atomic.AddUint64(&e.count, 1)
}

func (e *expired) addLate(id uint64, deadline time.Duration) {
	e.lateness[atomic.AddInt64(&e.latenessUsed, 1)-1] = now() - deadline
	e.add(id)
}

type size struct {
	ops, live, producers uint64
	seed, warmMs         uint64
}

func share(total, index, count uint64) uint64 {
	if index < total%count {
		return total/count + 1
	}
	return total / count
}

type producer struct {
	index, count uint64
	ops          uint64
	firstID      uint64
	random       random
	live         []*time.Timer
	ended        *expired
	scheduled    tally
	cancelled    tally
	/* Timers that were stopped after the measurement. */
	handedBack tally
	started    time.Duration
	finished   time.Duration
	/* The time of the schedules alone, for workloads that do not measure the rest of the loop. */
	inside time.Duration
	_      [64]byte
}

func (p *producer) schedule(delay time.Duration, id uint64) *time.Timer {
	ended := p.ended
	return time.AfterFunc(delay, func() { ended.add(id) })
}

func (p *producer) scheduleLate(delay time.Duration, id uint64, deadline time.Duration) {
	ended := p.ended
	time.AfterFunc(delay, func() { ended.addLate(id, deadline) })
}

type workload struct {
	prepare func(p *producer)
	run     func(p *producer)
	clear   func(p *producer)
	keeps   bool
	allFire bool
}

var workloads = map[string]workload{
	"schedule-cancel": {run: scheduleCancel},
	"live-ring":       {prepare: ringFill, run: ringTurn, clear: ringClear, keeps: true},
	"fire":            {run: fire, allFire: true},
	"light":           {run: light, allFire: true},
}

func scheduleCancel(p *producer) {
	for id := p.firstID; id < p.firstID+p.ops; id++ {
		timer := p.schedule(30*time.Second, id)
		p.scheduled.add(id)
		if timer.Stop() {
			p.cancelled.add(id)
		}
	}
}

func (p *producer) ringPut(slot int, id uint64) {
	p.live[slot] = p.schedule(p.random.delay(30000000, 60000000), id)
	p.scheduled.add(id)
}

func ringFill(p *producer) {
	for i := range p.live {
		p.ringPut(i, p.firstID+uint64(i))
	}
}

/* Cancels the oldest timer and schedules a new one in its slot, again and again. */
func ringTurn(p *producer) {
	slot := 0
	for id := p.firstID; id < p.firstID+p.ops && len(p.live) > 0; id++ {
		if p.live[slot].Stop() {
			p.cancelled.add(id)
		}
		p.ringPut(slot, id+uint64(len(p.live)))
		if slot++; slot == len(p.live) {
			slot = 0
		}
	}
}

/* Stops the timers that are still pending after the measurement. */
func ringClear(p *producer) {
	for i := range p.live {
		id := p.firstID + p.ops + uint64(i)
		if p.live[(id-p.firstID)%uint64(len(p.live))].Stop() {
			p.handedBack.add(id)
		}
	}
}

func fire(p *producer) {
	for id := p.firstID; id < p.firstID+p.ops; id++ {
		delay := p.random.delay(1000, 1000000)
		if id%latenessEvery == 0 {
			p.scheduleLate(delay, id, now()+delay)
		} else {
			p.schedule(delay, id)
		}
		p.scheduled.add(id)
	}
}

func light(p *producer) {
	next := p.started
	for id := p.firstID; id < p.firstID+p.ops; id++ {
		delay := p.random.delay(1000, 50000)
		before := now()
		p.scheduleLate(delay, id, before+delay)
		p.inside += now() - before
		p.scheduled.add(id)
		next += lightPeriod * time.Duration(p.count)
		time.Sleep(next - now())
	}
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

type round struct {
	work      workload
	size      size
	ended     expired
	producers []producer
	cpu       time.Duration
}

func newRound(work workload, s size) *round {
	r := &round{work: work, size: s, producers: make([]producer, s.producers)}
	if work.allFire {
		r.ended.lateness = make([]time.Duration, s.ops)
	}
	for i := range r.producers {
		r.fill(&r.producers[i], uint64(i))
	}
	return r
}

func (r *round) fill(p *producer, index uint64) {
	*p = producer{
		index:   index,
		count:   r.size.producers,
		ops:     share(r.size.ops, index, r.size.producers),
		firstID: index<<40 + 1,
		random:  random{(r.size.seed + index + 1) * 0x9e3779b97f4a7c15},
		ended:   &r.ended,
	}
	if r.work.keeps {
		p.live = make([]*time.Timer, share(r.size.live, index, r.size.producers))
	}
}

/* Runs `do` for all producers at the same time, each in its own goroutine. */
func (r *round) each(do func(p *producer)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i := range r.producers {
		ready.Add(1)
		done.Add(1)
		go func(p *producer) {
			ready.Done()
			<-start
			do(p)
			done.Done()
		}(&r.producers[i])
	}
	ready.Wait()
	close(start)
	done.Wait()
}

func (r *round) waitExpired() {
	end := now() + waitExpired
	for atomic.LoadUint64(&r.ended.count) < r.size.ops && now() < end {
		time.Sleep(2 * time.Millisecond)
	}
}

func (r *round) run() {
	if r.work.prepare != nil {
		r.each(r.work.prepare)
	}
	runtime.GC()
	cpu := cpuTime()
	r.each(func(p *producer) {
		p.started = now()
		r.work.run(p)
		p.finished = now()
	})
	if r.work.allFire {
		r.waitExpired()
	}
	r.cpu = cpuTime() - cpu
	if r.work.clear != nil {
		r.each(r.work.clear)
	}
}

func (r *round) nsPerOp() float64 {
	started, finished, inside := r.producers[0].started, r.producers[0].finished, time.Duration(0)
	for i := range r.producers {
		p := &r.producers[i]
		if p.started < started {
			started = p.started
		}
		if p.finished > finished {
			finished = p.finished
		}
		inside += p.inside
	}
	if inside == 0 {
		inside = finished - started
	}
	return float64(inside) / float64(r.size.ops)
}

/* Returns the same number for all values in one bucket of the harness's histogram (perf/harness/histogram.c). */
func bucketOf(value time.Duration) time.Duration {
	drop := 0
	for value>>drop >= 128 {
		drop++
	}
	return value >> drop << drop
}

/* Prints one line for each bucket. Its greatest value represents the others, so the maximum stays exact. */
func printLateness(out *bufio.Writer, values []time.Duration) {
	sort.Slice(values, func(i, j int) bool { return values[i] < values[j] })
	from := 0
	for i := 1; i <= len(values); i++ {
		if i < len(values) && values[i] >= 0 && bucketOf(values[i]) == bucketOf(values[from]) {
			continue
		}
		fmt.Fprintf(out, "lateness %d %d\n", int64(values[i-1]), i-from)
		from = i
	}
}

func (r *round) print() {
	var scheduled, cancelled, handedBack tally
	for i := range r.producers {
		scheduled.merge(r.producers[i].scheduled)
		cancelled.merge(r.producers[i].cancelled)
		handedBack.merge(r.producers[i].handedBack)
	}
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprintf(out, "version time.AfterFunc, %s\n", runtime.Version())
	fmt.Fprintf(out, "ns_per_op %f\n", r.nsPerOp())
	fmt.Fprintf(out, "cpu_ns_per_op %f\n", float64(r.cpu)/float64(r.size.ops))
	fmt.Fprintf(out, "scheduled %d %d\n", scheduled.count, scheduled.idSum)
	fmt.Fprintf(out, "expired %d %d\n", atomic.LoadUint64(&r.ended.count), atomic.LoadUint64(&r.ended.idSum))
	fmt.Fprintf(out, "cancelled %d %d\n", cancelled.count, cancelled.idSum)
	fmt.Fprintf(out, "unexpired %d %d\n", handedBack.count, handedBack.idSum)
	printLateness(out, r.ended.lateness[:atomic.LoadInt64(&r.ended.latenessUsed)])
	fmt.Fprintf(out, "end\n")
	if out.Flush() != nil {
		os.Exit(1)
	}
}

func least(a, b uint64) uint64 {
	if a < b {
		return a
	}
	return b
}

func warmUp(name string, s size) {
	small := s
	small.ops, small.live = warmOps, least(s.live, warmLive)
	if name == "light" {
		name = "fire"
	}
	for until := now() + time.Duration(s.warmMs)*time.Millisecond; now() < until; {
		newRound(workloads[name], small).run()
	}
}

func parse(arguments []string) (size, error) {
	s := size{ops: 1000000, live: 1000000, producers: 1, warmMs: 2000}
	fields := map[string]*uint64{"ops": &s.ops, "live": &s.live, "producers": &s.producers,
		"seed": &s.seed, "warm": &s.warmMs}
	for _, argument := range arguments {
		key, text, _ := strings.Cut(argument, "=")
		value, err := strconv.ParseUint(text, 10, 32)
		if fields[key] == nil || err != nil {
			return s, fmt.Errorf("%s: not understood", argument)
		}
		*fields[key] = value
	}
	if s.ops == 0 || s.producers == 0 {
		return s, errors.New("ops and producers: at least 1")
	}
	return s, nil
}

func main() {
	if len(os.Args) < 2 || workloads[os.Args[1]].run == nil {
		fmt.Fprintln(os.Stderr, "WORKLOAD [ops=N] [producers=N] [live=N]")
		os.Exit(2)
	}
	s, err := parse(os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(memoryLimit)
	}
	/* The ticker keeps the next deadline near. Otherwise each timer of schedule-cancel would wake a thread. */
	defer time.NewTicker(time.Second).Stop()
	warmUp(os.Args[1], s)
	r := newRound(workloads[os.Args[1]], s)
	r.run()
	r.print()
}
