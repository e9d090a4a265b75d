"""Every choice of the method in one nested, validated, serialisable value. Presets are in `cohegraph.presets`."""

import json
import math
import reprlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from cohegraph.errors import CohegraphError, in_words

Share = Annotated[float, Field(ge=0, lt=1)]
ClassWeights = Literal["none", "balanced"]
ObjectiveKind = Literal["levels", "ordinal", "rating", "ranking"]


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_value_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        kind = cls.model_fields[str(info.field_name)].annotation
        if kind is bool or (isinstance(kind, type) and issubclass(kind, BaseModel)):
            return value
        values = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else (value,)
        if any(isinstance(one, bool) for one in values):
            raise ValueError("it takes no truth value")
        return value


def _separated(value: Any) -> Any:
    """A list, also where it was given as words or numbers with commas between them."""
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


class ParserSettings(_Group):
    """Step 1: sentences and nouns."""

    kind: Literal["spacy", "stanza"] = "spacy"
    model: str = Field("en_core_web_sm", description="A spaCy package or folder; for Stanza a language or a folder.")


class LanguageSettings(_Group):
    """The language of the documents."""

    expected: Literal["english", "any"] = Field("english", description="Texts in other languages get a notice, or not.")


class VectorSettings(_Group):
    """The word vectors that compare nouns."""

    source: str = Field("glove-6b-50d", description="A packaged name, a GloVe text file, or spacy:NAME.")


class EncoderSettings(_Group):
    """Step 5: the document vector."""

    source: str = Field("all-MiniLM-L6-v2", description="A packaged name, a folder, or a name on the model hub.")
    max_tokens: int = Field(512, ge=8, description="The longest piece of text encoded at once.")
    overflow: Literal["windows", "cut"] = Field("windows", description="Longer texts are split into windows, or cut.")
    precision: Literal["auto", "float32", "int8"] = Field(
        "auto", description="int8 is faster, with nearly the same digits; auto uses it with the packaged encoder."
    )


class ReaderSettings(_Group):
    """What reads the text along, if anything does."""

    source: str | None = Field(
        None, description="A language model: smollm2-135m, a folder, a GGUF file, or a name on the model hub."
    )
    precision: Literal["auto", "float32", "int8"] = Field(
        "auto", description="int8 is faster, with nearly the same digits; auto uses it if losses stay within 0.5 %."
    )
    heads: str | None = Field(
        "default", description="What judges its states: the heads that come with cohegraph, or a folder of heads."
    )
    alone: bool = Field(False, description="Each sentence is read by itself, too: it takes twice as long.")

    @property
    def judges(self) -> bool:
        """Whether documents are read and judged. Without heads, the reader only serves linkers."""
        return self.source is not None and self.heads is not None


class LinkSettings(_Group):
    """Step 2, Algorithm 1: when two sentences link."""

    linkers: tuple[str, ...] = Field(
        ("nouns",),
        min_length=1,
        description="What links sentences: nouns (Algorithm 1), connective, vectors, context, context-exact, reading; "
        "several work together.",
    )
    combine: Literal["union", "side-by-side"] = Field(
        "union", description="Links of several kinds are counted as one graph, or as one block of patterns for each."
    )
    thresholds: dict[str, Share] = Field(
        {}, description="The strength above which a linker links, by its name; nouns have delta instead."
    )
    delta: float = Field(0.8, gt=0, le=1, description="The cosine two nouns must exceed; it belongs to the vectors.")
    inclusive: bool = Field(False, description="A cosine equal to delta links too.")
    spelling: float | None = Field(None, gt=0, le=1, description="Character BLEU that links two nouns as well.")
    noun_form: Literal["text", "lemma"] = Field("text", description="Nouns are compared as written, or as lemmas.")
    proper_nouns: bool = Field(True, description="Names count as nouns.")
    min_words: int = Field(0, ge=0, description="Sentences with fewer words are left out of the graph.")

    @field_validator("linkers", mode="before")
    @classmethod
    def _separated_by_commas(cls, value: Any) -> Any:
        return _separated(value)

    @field_validator("linkers")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            raise ValueError("name every linker once")
        return value

    @model_validator(mode="after")
    def _thresholds_of_linkers(self) -> Self:
        for name in self.thresholds:
            if name == "nouns":
                raise ValueError("the threshold of nouns is links.delta")
            if name not in self.linkers:
                raise ValueError(f"there is a threshold for '{name}', which is not one of the linkers")
        return self


class SubgraphSettings(_Group):
    """Step 3, Algorithm 2: which subgraphs are counted, and as what."""

    k: int = Field(4, ge=3, le=6, description="Sentences in a subgraph, 3 to 6.")
    window: int = Field(8, ge=3, le=20, description="Sentences in a window (w), k to 20.")
    patterns: Literal["isomorphic", "ordered"] = Field("isomorphic", description="Whether the sentences' order counts.")
    subsets: Literal["windows", "all"] = Field("windows", description="Algorithm 2's windows, or all subsets in reach.")

    @model_validator(mode="after")
    def _window_holds_a_subgraph(self) -> Self:
        if self.window < self.k:
            raise ValueError(f"a window of {self.window} sentences cannot hold subgraphs of {self.k}")
        return self


class CorpusGraphSettings(_Group):
    """Step 4, Equations 1 to 3."""

    weighting: Literal["tfidf", "tf", "none"] = Field(
        "tfidf", description="Edges between documents and patterns: Equation 1, without its idf, or no edges."
    )
    strength: float = Field(1.0, gt=0, le=10, description="Factor of the edges between documents and patterns.")
    pmi: bool = Field(True, description="Edges between patterns.")
    unseen: Literal["ignore", "released"] = Field("ignore", description="Weight of patterns not seen in training.")
    too_short: Literal["isolated", "pattern"] = Field("isolated", description="Documents with fewer than k sentences.")


class NodeSettings(_Group):
    """Step 5: what document nodes carry besides the vector."""

    surface: float = Field(0.0, ge=0, le=10, description="Weight of six surface figures; 0 for none, as in the paper.")


class ObjectiveSettings(_Group):
    """What is learnt: levels or ratings."""

    kind: ObjectiveKind = Field("levels", description="Levels, ordered levels, a rating, or a ranking within groups.")
    range: tuple[float, float] = Field((0.0, 1.0), description="The lowest and the highest rating that can be given.")
    thresholds: tuple[Share, ...] = Field(
        (1 / 3, 2 / 3), description="Where one level ends and the next begins, as shares of the range of ratings."
    )

    @field_validator("range", "thresholds", mode="before")
    @classmethod
    def _separated_by_commas(cls, value: Any) -> Any:
        return _separated(value)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not 0 < self.range[1] - self.range[0] < math.inf:
            raise ValueError("the lowest rating must be below the highest")
        if not self.thresholds or list(self.thresholds) != sorted(set(self.thresholds)) or self.thresholds[0] == 0:
            raise ValueError("thresholds must rise, and lie above 0")
        return self

    @property
    def span(self) -> tuple[float, float] | None:
        """Between what ratings must lie; a ranking compares numbers of any size."""
        return None if self.kind == "ranking" else self.range

    @property
    def is_of_levels(self) -> bool:
        """Whether documents are labelled with levels rather than ratings."""
        return self.kind in ("levels", "ordinal")


class TrainingSettings(_Group):
    """Step 6, Equations 4 to 7: the network and how it learns."""

    hidden: int = Field(240, ge=1, description="Hidden units.")
    dropout: Share = Field(0.5, description="Share of hidden units left out in a step.")
    input_dropout: Share = Field(0.0, description="Share of the document vectors' numbers left out in a step.")
    init: Literal["glorot", "normal"] = Field("glorot", description="Weights at the start.")
    epochs: int = Field(160, ge=1, description="Steps over all training documents.")
    learning_rate: float = Field(0.01, gt=0, le=100, description="Adam's.")
    weight_decay: float = Field(0.0, ge=0, description="Adam's L2 penalty.")
    clip: float | None = Field(None, gt=0, description="Largest norm of the gradient.")
    class_weights: ClassWeights = Field("none", description="Weigh rare levels more.")
    dev_share: Share = Field(0.0, description="Share of the training documents held out to choose the epoch.")
    choose_by: Literal["accuracy", "loss"] = Field("accuracy", description="What the best epoch on dev is best in.")
    patience: int | None = Field(None, ge=1, description="Stop after so many epochs without a better one on dev.")
    seed: int = Field(0, ge=0, lt=2**32, description="Of the first weights, dropout and the dev split.")


class Settings(_Group):
    """All choices of one model. The default is the `compact` stack with the paper's method."""

    language: LanguageSettings = LanguageSettings()
    parser: ParserSettings = ParserSettings()
    vectors: VectorSettings = VectorSettings()
    encoder: EncoderSettings = EncoderSettings()
    reader: ReaderSettings = ReaderSettings()
    links: LinkSettings = LinkSettings()
    subgraphs: SubgraphSettings = SubgraphSettings()
    corpus_graph: CorpusGraphSettings = CorpusGraphSettings()
    nodes: NodeSettings = NodeSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    training: TrainingSettings = TrainingSettings()

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Settings from nested dictionaries or dotted names; what is left out has its default."""
        if dotted := {name: value for name, value in values.items() if "." in str(name)}:
            rest = {name: value for name, value in values.items() if name not in dotted}
            return cls.from_dict(rest).replaced(dotted)
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"]) or "settings"
            given = "" if isinstance(first["input"], dict) else f" (given: {reprlib.repr(first['input'])})"
            raise CohegraphError(
                f"The setting {name} is not valid: {in_words(first)}{given}.", code="bad-setting"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Nested dictionaries of plain values, as saved with a model."""
        return self.model_dump(mode="json")

    def replaced(self, changes: Mapping[str, Any]) -> Self:
        """A copy with some values changed, named with dots: ``{"subgraphs.k": 5}``."""
        values = self.to_dict()
        for name, value in changes.items():
            group: Any = values
            *path, last = name.split(".")
            for step in path:
                group = group.get(step) if isinstance(group, dict) else None
            if not isinstance(group, dict) or last not in group:
                known = ", ".join(self.flat())
                raise CohegraphError(f"There is no setting '{name}': choose from {known}.", code="no-setting")
            group[last] = value
        return self.from_dict(values)

    def of_features(self, *, places: bool = True) -> dict[str, Any]:
        """All that shapes the features of a document; without ``places``, leave out where parts are found."""
        chosen = {name: value for name, value in self.flat().items() if name.split(".")[0] in _OF_FEATURES}
        return {name: value for name, value in chosen.items() if places or name not in _PLACES}

    def flat(self) -> dict[str, Any]:
        """All values by their dotted names."""
        return {f"{group}.{name}": value for group, items in self.to_dict().items() for name, value in items.items()}


_OF_FEATURES = ("parser", "vectors", "encoder", "reader", "links", "subgraphs")
_PLACES = ("parser.model", "vectors.source", "encoder.source", "reader.source", "reader.heads")


def parse_change(text: str) -> tuple[str, Any]:
    """``subgraphs.k=5`` as a name and a value; the value is JSON, or else plain text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise CohegraphError(f"'{text}' is not a setting: write NAME=VALUE, such as subgraphs.k=5.", code="bad-setting")
    try:
        return name.strip(), json.loads(value)
    except RecursionError:
        raise CohegraphError(
            f"The value of {name.strip()} is nested too deeply: write a number or a word.", code="bad-setting"
        ) from None
    except ValueError:
        return name.strip(), value.strip()
