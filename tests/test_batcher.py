"""The thread that owns the model: texts of many clients together, nobody starved, nothing lost."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest
from material import refused
from serving import assessed, run, soon

from cohegraph.errors import MissingPartError
from cohegraph.serve.batcher import Batcher, StoppedError, TooBusyError, TooLongError
from cohegraph.serve.limits import Limits


def test_texts_of_many_clients_are_scored_together(held):
    async def work(batcher):
        first = asyncio.create_task(batcher.assess(["The first."]))
        await soon(held.entered.is_set)
        others = [asyncio.create_task(batcher.assess([f"Dog {number}.", "A cat."])) for number in range(10)]
        await soon(lambda: batcher.waiting == 21)
        held.gate.set()
        found = await asyncio.gather(first, *others)
        assert [len(one) for one in found] == [1] + [2] * 10
        assert batcher.waiting == 0

    run(held, work, batch=8)
    assert [len(batch) for batch in held.batches] == [1, 8, 8, 4]


@pytest.mark.parametrize("fails", ["in the model", "in the parser"])
def test_a_text_that_fails_does_not_fail_its_neighbours(held, shipped, monkeypatch, fails):
    if fails == "in the parser":
        parser = shipped.featurizer.parser
        parse = parser.parse

        def choosy(texts):
            if any("poison" in text for text in texts):
                raise RuntimeError("this cannot be parsed")
            return parse(texts)

        monkeypatch.setattr(parser, "parse", choosy)
    texts = ["A dog sleeps.", "It is poison.", "A cat sleeps.", "A tree grows. A tree falls. A tree lies."]

    async def work(batcher):
        first = asyncio.create_task(batcher.assess(["The first."]))
        await soon(held.entered.is_set)
        tasks = [asyncio.create_task(batcher.assess([text])) for text in texts]
        await soon(lambda: batcher.waiting == 5)
        held.gate.set()
        await first
        return await asyncio.gather(*tasks, return_exceptions=True)

    one, poison, other, long = run(held, work, sentences=2)
    assert isinstance(poison, RuntimeError)
    assert isinstance(long, TooLongError)
    assert long.code == "too-many-sentences"
    assert [one[0].to_dict(), other[0].to_dict()] == [assessed(shipped, texts[0]), assessed(shipped, texts[2])]


def test_a_client_that_goes_away_harms_nobody_and_its_texts_are_not_scored(held, shipped):
    async def work(batcher):
        first = asyncio.create_task(batcher.assess(["The first."]))
        await soon(held.entered.is_set)
        leaving = [asyncio.create_task(batcher.assess(["Gone.", "Gone too."])) for _ in range(3)]
        staying = asyncio.create_task(batcher.assess(["A dog sleeps."]))
        await soon(lambda: batcher.waiting == 8)
        for task in [first, *leaving]:
            task.cancel()
        await asyncio.gather(first, *leaving, return_exceptions=True)
        held.gate.set()
        assert [one.to_dict() for one in await staying] == [assessed(shipped, "A dog sleeps.")]
        assert batcher.waiting == 0

    run(held, work)
    assert held.batches == [["The first."], ["A dog sleeps."]]


@pytest.mark.parametrize("batch", [1, 2, 8])
@pytest.mark.parametrize("crowd", ["texts", "calls"])
def test_patient_texts_are_not_starved(held, batch, crowd):
    """Whatever others keep sending, and however small batches are."""
    held.gate.set()

    async def work(batcher):
        done = asyncio.Event()

        async def keep_busy(number):
            while not done.is_set():
                await (batcher.assess([f"Dog {number}."]) if crowd == "texts" else batcher.call(lambda: None))

        busy = [asyncio.create_task(keep_busy(number)) for number in range(12)]
        await soon(lambda: batcher.waiting == 12)
        found = await asyncio.wait_for(batcher.assess(["A patient cat."] * 4, patient=True), 20)
        done.set()
        await asyncio.gather(*busy)
        return found

    assert len(run(held, work, batch=batch)) == 4


def test_patient_texts_wait_behind_others_and_leave_a_batch_to_them(held):
    async def work(batcher):
        first = asyncio.create_task(batcher.assess(["The first."]))
        await soon(held.entered.is_set)
        patient = asyncio.create_task(batcher.assess(["Patient."] * 8, patient=True))
        await soon(lambda: batcher.waiting == 9)
        quick = asyncio.create_task(batcher.assess(["Quick."] * 8))
        await soon(lambda: batcher.waiting == 17)
        held.gate.set()
        await asyncio.gather(first, patient, quick)

    run(held, work, batch=8)
    assert [dict(Counter(batch)) for batch in held.batches[1:]] == [
        {"Quick.": 6, "Patient.": 2},
        {"Quick.": 2, "Patient.": 6},
    ]


def test_long_texts_do_not_fill_a_batch_that_others_wait_for(held):
    async def work(batcher):
        first = asyncio.create_task(batcher.assess(["The first."]))
        await soon(held.entered.is_set)
        long = ["a" * length + str(number) for length in (7_000, 27_985) for number in range(4)]
        patient = asyncio.create_task(batcher.assess(long[:4], patient=True))
        await soon(lambda: batcher.waiting == 5)
        quick = asyncio.create_task(batcher.assess(long[4:]))
        await soon(lambda: batcher.waiting == 9)
        held.gate.set()
        await asyncio.gather(first, patient, quick)

    run(held, work, batch=8)
    # Of 27,986 characters and, the patient ones, 7,001: two of the long, one short that fits beside, and then the rest.
    sizes = [sorted(len(text) // 1_000 for text in batch) for batch in held.batches[1:]]
    assert sizes == [[7, 27, 27], [7, 27, 27], [7, 7]]


def test_changed_texts_are_not_measured_again(shipped):
    """A text at the limit may be split otherwise where a sentence was moved."""

    async def work(batcher):
        with pytest.raises(TooLongError):
            await batcher.assess(["A dog sleeps. A cat sleeps."])
        return await batcher.assess(["A dog sleeps. A cat sleeps."], patient=True)

    assert run(shipped, work, sentences=1)[0].counts["sentences"] == 2


def test_stop_finishes_what_was_taken_on_and_then_nothing_is(held):
    async def work(batcher):
        quick = asyncio.create_task(batcher.assess([f"Dog {number}." for number in range(20)]))
        patient = asyncio.create_task(batcher.assess(["A cat."] * 10, patient=True))
        call = asyncio.create_task(batcher.call(lambda: "called"))
        await soon(held.entered.is_set)
        stop = asyncio.create_task(batcher.stop())
        await soon(lambda: batcher.stopping)
        assert not stop.done()
        held.gate.set()
        await stop
        assert len(await quick) == 20
        assert len(await patient) == 10
        assert await call == "called"
        with pytest.raises(StoppedError):
            await asyncio.wait_for(batcher.assess(["Too late."]), 5)

    run(held, work, batch=4)


def test_a_batcher_can_be_started_again(shipped):
    async def work():
        batcher = Batcher(shipped, Limits())
        for _ in range(2):
            batcher.start()
            assert len(await asyncio.wait_for(batcher.assess(["A dog."]), 20)) == 1
            await batcher.stop()

    asyncio.run(work())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_whoever_waits_learns_when_the_thread_has_ended(shipped):
    def fail(_size):
        raise RuntimeError("there is no counter")

    async def work():
        batcher = Batcher(shipped, Limits(), on_batch=fail)
        batcher.start()
        with pytest.raises(StoppedError):
            await asyncio.wait_for(batcher.assess(["A dog."]), 5)
        assert batcher.stopping
        await asyncio.wait_for(batcher.stop(), 5)

    asyncio.run(work())


def test_the_thread_that_scores_is_prepared_before_any_text_comes(shipped):
    """Also without an event loop: the thread that scores must be the first to use torch."""
    prepared = []
    batcher = Batcher(shipped, Limits(), prepare=lambda: prepared.append(threading.current_thread().name))
    batcher.open()
    assert prepared == ["model"]

    async def work():
        batcher.start()
        assert len(await asyncio.wait_for(batcher.assess(["A dog."]), 20)) == 1
        await batcher.stop()

    asyncio.run(work())
    assert prepared == ["model"]


def test_what_goes_wrong_while_preparing_is_raised(shipped):
    def fail():
        raise MissingPartError("There are no vectors.")

    batcher = Batcher(shipped, Limits(), prepare=fail)
    with refused("missing-part", MissingPartError):
        batcher.open()
    assert batcher.stopping


def test_room_is_not_lost_with_those_who_waited_for_it(held):
    """Those who wait for room and leave must not take it with them."""

    async def work(batcher):
        taken = [await batcher.assess_when_free(f"Dog {number}.") for number in range(2)]
        waiting = [asyncio.create_task(batcher.assess_when_free("A cat.")) for _ in range(5)]
        last = asyncio.create_task(batcher.assess_when_free("The last cat."))
        await soon(held.entered.is_set)
        await asyncio.sleep(0)
        for task in waiting[:4]:
            task.cancel()
        held.gate.set()
        await asyncio.gather(*taken)
        waiting[4].cancel()
        outcome = await asyncio.wait_for(last, 10)
        return await outcome

    assert run(held, work, queue=4, batch=2).counts["sentences"] == 1


def test_streams_leave_room_for_requests(held):
    async def work(batcher):
        streams = [asyncio.create_task(batcher.assess_when_free(f"Line {number}.")) for number in range(20)]
        await soon(lambda: batcher.waiting == 4)
        request = asyncio.create_task(batcher.assess(["A dog."] * 4))
        await soon(lambda: batcher.waiting == 8)
        with pytest.raises(TooBusyError):
            await batcher.assess(["One more dog."])
        held.gate.set()
        assert len(await request) == 4
        for task in streams:
            assert (await (await task)).counts["sentences"] == 1

    run(held, work, queue=8, batch=4)
