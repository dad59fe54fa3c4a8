package main

import (
	"fmt"
	"strings"
)

// budgets is the table of what has to hold, each with what was measured: the
// issue on speed fixes them.
func (r *report) budgets() string {
	const count = 1000
	var rows [][]string
	add := func(what, budget string, limit, got float64, peer string) {
		verdict := "holds"
		if got > limit {
			verdict = "**missed**"
		}
		rows = append(rows, []string{what, budget, fmt.Sprintf("%.2f", got), verdict, peer})
	}
	to := func(what, work string, delay int, limit, got float64, raw *cell) {
		peer := ""
		if name, c := r.bestPeer(work, count, delay); c != nil {
			peer = fmt.Sprintf("%s %.1f", name, c.seconds/raw.seconds)
		}
		add(what, fmt.Sprintf("%.3g x raw", limit), limit, got, peer)
	}
	for _, delay := range of(r, mixedWorks, func(x result) int { return x.Delay }) {
		limits := map[string]float64{first: 1.05, unchanged: 0.12}
		if delay > 0 {
			limits = map[string]float64{first: 1, unchanged: 0.2}
		}
		for _, x := range []struct{ work, name string }{{first, "first apply of %d, %s"}, {unchanged, "re-apply of %d, nothing changed, %s"}} {
			if got := r.pairs(x.work, count, delay); got > 0 {
				to(fmt.Sprintf(x.name, count, wire(delay)), x.work, delay, limits[x.work], got, r.cell("raw", x.work, count, delay))
			}
		}
	}
	if ours, raw := r.cell("brine", preview, count, 0), r.cell("raw", first, count, 0); ours != nil && raw != nil && ours.failed == "" && raw.failed == "" {
		to("server preview, all new", preview, 0, 2, ours.seconds/raw.seconds, raw)
	}
	if ours, raw := r.cell("brine", destroy, count, 0), r.cell("raw", destroy, count, 0); ours != nil && raw != nil {
		limit := 1.5*raw.answered + (raw.seconds - raw.answered)
		peer := ""
		if name, c := r.bestPeer(destroy, count, 0); c != nil {
			peer = fmt.Sprintf("%s %.1f s", name, c.seconds)
		}
		add("destroy, waited for, seconds", fmt.Sprintf("1.5 x raw's deletes (%.2f s) and the namespace controller's %.2f s", raw.answered, raw.seconds-raw.answered), limit, ours.seconds, peer)
	}
	for _, large := range []int{5000, 10000} {
		small, big := r.cell("brine", first, count, 0), r.cell("brine", first, large, 0)
		raw, rawBig := r.cell("raw", first, count, 0), r.cell("raw", first, large, 0)
		if small == nil || big == nil || raw == nil || rawBig == nil {
			continue
		}
		grows := float64(large) / count
		add(fmt.Sprintf("first apply of %d to that of %d", large, count), fmt.Sprintf("grows as the count does, or as raw does (%.1f), and a tenth", rawBig.seconds/raw.seconds),
			1.1*max(grows, rawBig.seconds/raw.seconds), big.seconds/small.seconds, "")
		if large == 10000 {
			most := 0.0
			for _, work := range mixedWorks {
				if c := r.cell("brine", work, large, 0); c != nil {
					most = max(most, c.memory)
				}
			}
			add("peak memory at 10,000, MB", "400", 400, most, "")
		}
	}
	for _, work := range []string{scaleUnchanged, scalePruned} {
		if c := r.cell("brine", work, 50_000, 0); c != nil && c.failed == "" {
			add(strings.TrimPrefix(work, "large: ")+", 50,000 objects: memory for one, KB", "12", 12, c.memory*1024/50_000, "")
		}
	}
	if c := r.cell("brine", nothing, 0, 0); c != nil {
		add("brine version, seconds", "0.015", 0.015, c.seconds, "")
	}
	if ours, raw := r.cell("brine", oneState, 0, 0), r.cell("raw", oneState, 0, 0); ours != nil && raw != nil {
		add("brine status of one object, seconds", fmt.Sprintf("a GET (%.3f s) and 0.05", raw.seconds), raw.seconds+0.05, ours.seconds, "")
	}
	if c := r.cell("brine", five, 5, 0); c != nil {
		add("five objects, start to end, seconds", "0.3", 0.3, c.seconds, "")
	}
	if c := r.cell("brine", reading, 223, 0); c != nil {
		add(reading+", seconds", "0.15", 0.15, c.seconds, "")
	}
	for _, work := range platformWorks {
		ours, peer := r.cell("brine", work, 0, 0), r.cell("kapp", work, 0, 0)
		if ours != nil && work == seeNewer {
			add("the real platform, "+work+", seconds", "0.36", 0.36, ours.seconds, "")
		}
		if ours != nil && ours.toBound > 0 {
			add("the real platform, "+work+": time to its bound", "1.1", 1.1, ours.toBound, "")
		}
		if ours == nil || peer == nil || ours.failed != "" || peer.failed != "" {
			continue
		}
		what := "the real platform, " + work
		add(what+": time", "a third of kapp's", 1.0/3, ours.seconds/peer.seconds, fmt.Sprintf("kapp %.1f s", peer.seconds))
	}
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("**Goals of the developers**\n\n")
	table(&b, []string{"what", "budget", "measured", "", "best other"}, rows)
	for _, delay := range of(r, mixedWorks, func(x result) int { return x.Delay }) {
		b.WriteString(r.floor(count, delay))
	}
	b.WriteString(r.dryRunFloor())
	return b.String()
}

// dryRunFloor is the least time of the platform's dry run of an upgrade where the server
// and brine share all cores, and neither ever waits.
func (r *report) dryRunFloor() string {
	ours, cores := r.cell("brine", seeNewer, 0, 0), 0.0
	if _, err := fmt.Sscan(r.Machine, &cores); err != nil || ours == nil || ours.failed != "" || ours.costs[serverCPU] == 0 {
		return ""
	}
	server := float64(ours.costs[serverCPU]) / 1000
	return fmt.Sprintf("The floor of the platform's dry run of the newer release is %.2f s: %.2f s of processor time of kube-apiserver, and %.2f s of brine's, on %.0f cores.\n\n",
		(server+ours.cpu)/cores, server, ours.cpu, cores)
}

// Round trips of a first apply that wait for each other (bundle/run: TestRoundTrips),
// and raw's: namespaces, then all else.
const chain, rawChain = 9, 2

// floor is the least time of a first apply beside a server that is busy all the time:
// what brine's processor time takes from it, and its round trips, are added to raw's.
func (r *report) floor(count, delay int) string {
	ours, raw := r.cell("brine", first, count, delay), r.cell("raw", first, count, delay)
	cores := 0.0
	if _, err := fmt.Sscan(r.Machine, &cores); err != nil || ours == nil || raw == nil || ours.failed != "" || raw.failed != "" {
		return ""
	}
	trips := float64((chain-rawChain)*delay) / 1000
	least := raw.seconds + trips + (ours.cpu-raw.cpu)/cores
	return fmt.Sprintf("The floor of a first apply of %d, %s, is %.2f x raw: %.2f s of raw, %.2f s for %d round trips more, and %.2f s that brine's processor time (%.2f s, raw's %.2f s) takes from the server on the same %.0f cores.\n\n",
		count, wire(delay), least/raw.seconds, raw.seconds, trips, chain-rawChain, (ours.cpu-raw.cpu)/cores, ours.cpu, raw.cpu, cores)
}
