/* SPDX-License-Identifier: MIT */

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.function.Function;

/** One run of a workload on a new engine, either to warm up or to measure. */
final class Round {
	private static final long WAIT_EXPIRED_NS = 120_000_000_000L;
	private static final long POLL_MS = 2;
	private static final OperatingSystemMXBean SYSTEM =
			(OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

	interface ProducerMaker {
		Producer make(Engine engine, Size size, int index);
	}

	private final Engine engine;
	private final Producer[] producers;
	private final CyclicBarrier prepared;
	private final CyclicBarrier go;
	private final CountDownLatch ended;
	private final CyclicBarrier clear;
	private final Size size;
	private long cpuNs;

	/** {@code latenessRoom}: how many timeouts will record their lateness. */
	Round(Engine.Maker engineMaker, ProducerMaker producerMaker, Size size, int latenessRoom) {
		this.size = size;
		engine = engineMaker.make(new Expired(latenessRoom));
		producers = new Producer[size.producers];
		for (int i = 0; i < producers.length; i++)
			producers[i] = producerMaker.make(engine, size, i);
		prepared = new CyclicBarrier(size.producers + 1);
		go = new CyclicBarrier(size.producers + 1);
		clear = new CyclicBarrier(size.producers + 1);
		ended = new CountDownLatch(size.producers);
	}

	/* Runs a producer. If it fails, ends the process, so that the harness sees the exit code. */
	private void produce(Producer producer) {
		try {
			producer.prepare();
			prepared.await();
			go.await();
			producer.run();
			ended.countDown();
			clear.await();
			producer.clear();
		} catch (Throwable e) {
			e.printStackTrace();
			Runtime.getRuntime().halt(1);
		}
	}

	/** Waits until the engine's worker has seen all earlier schedules. */
	private void flush() throws InterruptedException {
		CountDownLatch seen = new CountDownLatch(1);

		engine.scheduleLast(seen::countDown);
		seen.await();
	}

	private void waitExpired(long count) throws InterruptedException {
		long endNs = System.nanoTime() + WAIT_EXPIRED_NS;

		while (engine.expired.count() < count && System.nanoTime() < endNs)
			Thread.sleep(POLL_MS);
	}

	void run(boolean allFire, boolean collect) throws Exception {
		Thread[] threads = new Thread[producers.length];

		for (int i = 0; i < producers.length; i++) {
			Producer producer = producers[i];

			threads[i] = new Thread(() -> produce(producer));
			threads[i].start();
		}
		prepared.await();
		flush();
		if (collect)
			System.gc();
		cpuNs = SYSTEM.getProcessCpuTime();
		go.await();
		ended.await();
		if (allFire)
			waitExpired(size.ops);
		flush();
		cpuNs = SYSTEM.getProcessCpuTime() - cpuNs;
		clear.await();
		for (Thread thread : threads)
			thread.join();
		engine.close();
	}

	double nsPerOp() {
		long startedNs = Long.MAX_VALUE;
		long endedNs = Long.MIN_VALUE;
		long insideNs = 0;

		for (Producer producer : producers) {
			startedNs = Math.min(startedNs, producer.startedNs);
			endedNs = Math.max(endedNs, producer.endedNs);
			insideNs += producer.insideNs;
		}
		return (double) (insideNs != 0 ? insideNs : endedNs - startedNs) / size.ops;
	}

	double cpuNsPerOp() {
		return (double) cpuNs / size.ops;
	}

	/** Sums up one tally of all producers; {@code part} selects it. */
	private Tally sum(Function<Producer, Tally> part) {
		Tally all = new Tally();

		for (Producer producer : producers)
			all.merge(part.apply(producer));
		return all;
	}

	void printAccount(StringBuilder to) {
		to.append("scheduled ").append(sum(producer -> producer.scheduled)).append('\n');
		to.append("expired ").append(engine.expired).append('\n');
		to.append("cancelled ").append(sum(producer -> producer.cancelled)).append('\n');
		to.append("unexpired ").append(sum(producer -> producer.handedBack)).append('\n');
	}

	Expired expired() {
		return engine.expired;
	}
}
