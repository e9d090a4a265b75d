r"""ParSeq (Lai and Tetreault, 2018): three LSTMs, one above the other.

The first reads the words of a sentence, the second the sentences of a paragraph, the third the paragraphs of the
document; the last state of each is what the next one reads, and the last of all is classified:

.. math:: s_i = LSTM_1(w_{i1} \dots w_{in}), \quad p_j = LSTM_2(s_i \in j), \quad P = softmax(W LSTM_3(p_1 \dots p_m))

Simplified: blank lines part paragraphs, and a text without any is one paragraph; word vectors are not trained along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from cohegraph.systems.neural import Batch, Network, Reader, Recurrent, SequenceModel, Verdict


class _ParSeq(Network):
    def __init__(self, width: int, outputs: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.reader = Reader(width, hidden, dropout)
        self.sentence, self.paragraph, self.document = (Recurrent(hidden, hidden) for _ in range(3))
        self.verdict = Verdict(hidden, outputs, dropout)

    def forward(self, batch: Batch) -> Tensor:
        sentences = self.sentence.last(self.reader(batch.tokens), batch.sentences)
        paragraphs = self.paragraph.last(sentences, batch.paragraphs)
        outputs: Tensor = self.verdict(self.document.last(paragraphs, batch.paragraphs_of))
        return outputs


@dataclass(frozen=True)
class ParSeq(SequenceModel):
    """Words to sentences, sentences to paragraphs, paragraphs to the document."""

    name = "lai-tetreault-2018"
    title = "Lai & Tetreault (2018)"
    citation = "Lai and Tetreault (2018)"

    tokens: Literal["states", "words"] = "words"

    def network(self, width: int, outputs: int) -> Network:
        """Three LSTMs."""
        return _ParSeq(width, outputs, self.hidden, self.dropout)
